import { S3 } from '@aws-sdk/client-s3'
import t from 'tap'
import { SecondAccount } from '../../support/gateway/second-account.js'
import { startInProcess } from '../../support/server/in-process.js'
import { signedCall } from '../../support/sign/signed-request.js'

const OWNER = { accessKeyId: 'owner-key', secretAccessKey: 'owner-secret' }
const SECOND = { accessKeyId: 'second-key', secretAccessKey: 'second-secret' }
const account = { accessKey: 'second-account', secretKey: 'secret-of-the-second' }

const createJob = (
  report: string,
  source: string,
) => `<CreateJobRequest xmlns="http://awss3control.amazonaws.com/doc/2018-08-20/">
  <ConfirmationRequired>true</ConfirmationRequired><Operation><S3DeleteObjectTagging/></Operation>
  <Report><Enabled>true</Enabled><Bucket>arn:aws:s3:::owned</Bucket><Format>Report_CSV_20180820</Format>
    <ReportScope>AllTasks</ReportScope><ExpectedBucketOwner>${report}</ExpectedBucketOwner></Report>
  <ClientRequestToken>${report.slice(0, 8)}-${source.slice(0, 8)}</ClientRequestToken>
  <ManifestGenerator><S3JobManifestGenerator><ExpectedBucketOwner>${source}</ExpectedBucketOwner>
    <SourceBucket>arn:aws:s3:::owned</SourceBucket><EnableManifestOutput>false</EnableManifestOutput>
  </S3JobManifestGenerator></ManifestGenerator>
  <Priority>1</Priority><RoleArn>arn:aws:iam::111122223333:role/r</RoleArn></CreateJobRequest>`

t.test('an expected owner is compared with the owner of the bucket', async (t) => {
  const server = await startInProcess(t, 'full', { identities: [OWNER, { ...SECOND, account }] })
  const { endpoint, s3, gateway } = server
  const hop = await SecondAccount.start(t, gateway)
  await server.restart({ gateway: { url: hop.url, account: gateway.account } })
  const second = new S3({ endpoint, region: 'us-east-1', forcePathStyle: true, maxAttempts: 1, credentials: SECOND })
  t.teardown(() => second.destroy())
  await s3.createBucket({ Bucket: 'owned' })
  await second.createBucket({ Bucket: 'seconds' })
  await s3.putObject({ Bucket: 'owned', Key: 'k', Body: 'bytes' })
  const idOf = async (client: S3) => (await client.listBuckets({})).Owner?.ID ?? ''
  const [first, other] = [await idOf(s3), await idOf(second)]
  t.not(first, other)
  const code = (answer: Promise<unknown>) =>
    answer.then(
      () => 'done',
      (error: Error) => error.name,
    )
  const get = (client: S3, ExpectedBucketOwner: string) =>
    code(client.headObject({ Bucket: 'owned', Key: 'k', ExpectedBucketOwner }).then(() => {}))
  const list = (client: S3, Bucket: string, ExpectedBucketOwner: string) =>
    code(client.listObjectsV2({ Bucket, ExpectedBucketOwner }))
  const copy = (ExpectedSourceBucketOwner: string) =>
    code(second.copyObject({ Bucket: 'seconds', Key: 'k', CopySource: 'owned/k', ExpectedSourceBucketOwner }))

  const everything = async (when: string) => {
    t.equal(await list(second, 'owned', other), 'AccessDenied', `the caller is not the owner, ${when}`)
    t.not(await get(second, other), 'done', when)
    t.equal(await list(second, 'owned', first), 'done', when)
    t.equal(await get(second, first), 'done', when)
    t.equal(await copy(other), 'AccessDenied', when)
    t.equal(await copy(first), 'done', when)
    t.equal(await list(s3, 'owned', first), 'done', when)
    t.equal(await list(s3, 'owned', other), 'AccessDenied', when)
  }
  await everything('by the lists of the gateway')
  t.equal(await list(second, 'seconds', other), 'done')
  t.equal(await list(second, 'seconds', first), 'AccessDenied', 'the server does not own all buckets')
  const allow = (Action: string, Resource: string) => ({
    ...{ Effect: 'Allow', Principal: { CanonicalUser: other }, Action, Resource: `arn:aws:s3:::${Resource}` },
  })
  const Statement = [allow('s3:GetObject', 'owned/*'), allow('s3:ListBucket', 'owned')]
  await s3.putBucketPolicy({ Bucket: 'owned', Policy: JSON.stringify({ Version: '2012-10-17', Statement }) })
  await everything('by the owner on record')
  const unsigned = (owner: string) =>
    fetch(`${endpoint}/owned/k`, { headers: { 'x-amz-expected-bucket-owner': owner } }).then(({ status }) => status)
  await s3.putBucketPolicy({
    Bucket: 'owned',
    Policy: JSON.stringify({
      Version: '2012-10-17',
      Statement: [...Statement, { ...allow('s3:GetObject', 'owned/*'), Principal: '*' }],
    }),
  })
  t.same([await unsigned(first), await unsigned(other)], [200, 403])

  const create = async (report: string, source: string) => {
    const headers = { 'x-amz-account-id': '111122223333' }
    return (await signedCall(endpoint, OWNER, 'POST', '/v20180820/jobs', { body: createJob(report, source), headers }))
      .status
  }
  t.same([await create(first, first), await create(other, first), await create(first, other)], [200, 403, 403])

  const inventory = (AccountId: string) =>
    code(
      s3.putBucketInventoryConfiguration({
        ...{ Bucket: 'owned', Id: 'all' },
        InventoryConfiguration: {
          ...{ Id: 'all', IsEnabled: false, IncludedObjectVersions: 'Current', Schedule: { Frequency: 'Daily' } },
          Destination: { S3BucketDestination: { AccountId, Bucket: 'arn:aws:s3:::owned', Format: 'CSV' } },
        },
      }),
    )
  t.same([await inventory(first), await inventory(other)], ['done', 'AccessDenied'])
})

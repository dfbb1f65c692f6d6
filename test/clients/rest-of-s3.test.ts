import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { temporaryFolder } from '../support/content/folders.js'
import { Aws, type AwsVersion, awsVersions } from '../support/programs/aws-cli.js'
import { findClient, run } from '../support/programs/run.js'
import { S3cmd } from '../support/programs/s3cmd.js'
import { type Dealgate, startDealgate } from '../support/server/dealgate.js'

/** What clients ask of every store, what no store of this kind has, and the gateway's own paths. */

const aws = await awsVersions(t)
const s3cmdPath = await findClient(t, 's3cmd')
const curlPath = await findClient(t, 'curl')

/** s3api commands that read what is not set, and the error code of each or ''. s3/s3-calls has all. */
const UNSET: readonly (readonly [command: string, code: string])[] = [
  ['get-bucket-encryption', 'ServerSideEncryptionConfigurationNotFoundError'],
  ['get-object-lock-configuration', 'ObjectLockConfigurationNotFoundError'],
  ['get-bucket-accelerate-configuration', ''],
  ['list-bucket-inventory-configurations', ''],
]

const server = await startDealgate(t, { args: ['--passthrough'] })
for (const version of aws) await t.test(version.name, (t) => awsCli(t, version, server))
if (s3cmdPath) await t.test('s3cmd info', (t) => s3cmdInfo(t, s3cmdPath, server))
if (curlPath) await t.test('curl: JSON-RPC on the port of the S3 endpoint', (t) => jsonRpc(t, curlPath, server))

async function awsCli(t: Test, version: AwsVersion, server: Dealgate): Promise<void> {
  const cli = new Aws(version, server, temporaryFolder(t))
  const bucket = ['--bucket', version.name.replace(/[^a-z0-9]+/g, '-')]
  const object = [...bucket, '--key', 'key']
  await cli.api('create-bucket', ...bucket)
  await cli.api('put-object', ...object)

  for (const [command, code] of UNSET) {
    if (code === '') {
      const { ResponseMetadata: _, IsTruncated = false, RequestCharged, ...rest } = await cli.api(command, ...bucket)
      t.same([IsTruncated, RequestCharged, rest], [false, undefined, {}], command)
    } else t.match(await cli.apiFailing(command, ...bucket), `(${code})`, command)
  }
  t.match(await cli.api('get-bucket-request-payment', ...bucket), { Payer: 'BucketOwner' })
  const payment = (payer: string) => [
    'put-bucket-request-payment',
    ...bucket,
    '--request-payment-configuration',
    `Payer=${payer}`,
  ]
  const [command = '', ...ownerPays] = payment('BucketOwner')
  await cli.api(command, ...ownerPays)
  t.match(await cli.apiFailing(command, ...payment('Requester').slice(1)), /NotImplemented.*Payer must be BucketOwner/s)
  t.match(await cli.apiFailing('get-object-retention', ...object), '(InvalidRequest)')

  t.match(
    await cli.apiFailing('put-bucket-versioning', ...bucket, '--versioning-configuration', 'Status=Enabled'),
    /NotImplemented.*PutBucketVersioning is not implemented: the gateway keeps one version of each object/s,
  )
  const refused: [string, ...string[]][] = [
    ['put-object', '--server-side-encryption', 'AES256'],
    ['put-object', '--object-lock-legal-hold-status', 'ON'],
  ]
  for (const [command, ...args] of refused)
    t.match(await cli.apiFailing(command, ...object, ...args), /NotImplemented.*The header x-amz-/s, String(args[0]))
}

async function s3cmdInfo(t: Test, path: string, server: Dealgate): Promise<void> {
  const s3cmd = await S3cmd.configured(path, server, temporaryFolder(t))
  await s3cmd.run('mb', 's3://s3cmd-info')
  const file = join(s3cmd.home, 'file')
  await writeFile(file, 'content')
  await s3cmd.run('put', file, 's3://s3cmd-info/file')
  const bucket = await s3cmd.run('info', 's3://s3cmd-info')
  t.match(bucket, /Payer: *BucketOwner/)
  t.match(bucket, /Location: *\S+/)
  t.match(bucket, /Policy: *none/)
  t.match(bucket, /CORS: *none/)
  t.match(bucket, /ACL: *\w+: FULL_CONTROL/)
  const object = await s3cmd.run('info', 's3://s3cmd-info/file')
  t.match(object, /MD5 sum: *9a0364b9e99bb480dd25e1f0284c8555/)
  t.match(object, /ACL: *\w+: FULL_CONTROL/)
}

async function jsonRpc(t: Test, path: string, server: Dealgate): Promise<void> {
  const call = async (body: string) =>
    (
      await run(path, [
        '--silent',
        ...['-A', 'Mozilla/5.0', '-H', 'content-type: application/json', '-d', body],
        `${server.endpoint}/gateway/webrpc`,
      ])
    ).toString('utf8')
  const params = { username: 'nobody', password: 'wrong-password' }
  const refused = await call(JSON.stringify({ id: 1, jsonrpc: '2.0', method: 'web.Login', params }))
  t.match(JSON.parse(refused), { jsonrpc: '2.0', error: { message: /./ } })
  const code = ['--silent', '-o', '/dev/null', '-w', '%{http_code}']
  const download = await run(path, [...code, `${server.endpoint}/gateway/download/a/b?token=t`])
  t.equal(download.toString('utf8'), '501')
}

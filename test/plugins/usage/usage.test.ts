import { randomInt } from 'node:crypto'
import t, { type Test } from 'tap'
import { countJob } from '../../../plugins/usage/count.js'
import { S3Error } from '../../../src/plugin.js'
import { sdkFor } from '../../support/programs/sdk.js'
import { startDealgate } from '../../support/server/dealgate.js'
import { startInProcess } from '../../support/server/in-process.js'
import { type Endpoint, send } from '../../support/sign/send.js'

/** What buckets contain: DescribeBuckets and CountBucket. */

const owner = { accessKeyId: 'owner-key', secretAccessKey: 'owner-secret' }
const reader = {
  ...{ accessKeyId: 'reader-key', secretAccessKey: 'reader-secret' },
  rights: [
    { bucket: 'alpha', access: 'read' as const },
    { bucket: 'beta', prefix: 'own/', access: 'readwrite' as const },
  ],
}
const policed = {
  ...{ accessKeyId: 'policed-key', secretAccessKey: 'policed-secret' },
  policies: [
    {
      Statement: [
        { Effect: 'Allow', Action: ['s3:ListAllMyBuckets', 's3:GetBucketVersioning', 'usage:*'], Resource: '*' },
        { Effect: 'Allow', Action: 's3:ListBucket', Resource: 'arn:aws:s3:::alpha' },
      ],
    },
  ],
}

/** May count, and may not list. */
const counter = {
  ...{ accessKeyId: 'counter-key', secretAccessKey: 'counter-secret' },
  policies: [{ Statement: [{ Effect: 'Allow', Action: 'usage:CountBucket', Resource: '*' }] }],
}

function asker(endpoint: string, { accessKeyId, secretAccessKey } = owner) {
  return { endpoint, accessKey: accessKeyId, secretKey: secretAccessKey, region: 'us-east-1' }
}

async function ask(who: Endpoint, method: 'GET' | 'POST', target: string) {
  const { status, body } = await send(who, { method, target, headers: { accept: 'application/json' } })
  return { status, ...JSON.parse(String(body)) }
}

const DESCRIBE = '/-/usage/v1/buckets'

t.test('a page of buckets with numbers and settings', async (t) => {
  const { endpoint, s3 } = await startInProcess(t, 'full', { identities: [owner, reader, policed] })
  for (const Bucket of ['alpha', 'beta', 'empty']) await s3.createBucket({ Bucket })
  await s3.createBucket({ Bucket: 'locked', ObjectLockEnabledForBucket: true })
  await s3.putObject({ Bucket: 'alpha', Key: 'one', Body: 'x'.repeat(100) })
  await s3.putObject({ Bucket: 'alpha', Key: 'one', Body: 'x'.repeat(50) })
  await s3.putBucketVersioning({ Bucket: 'beta', VersioningConfiguration: { Status: 'Enabled' } })
  for (const Body of ['12345', '123']) await s3.putObject({ Bucket: 'beta', Key: 'own/a', Body })
  await s3.putObject({ Bucket: 'beta', Key: 'b', Body: '1234567' })
  await s3.deleteObject({ Bucket: 'beta', Key: 'b' })
  const Policy = JSON.stringify({
    Statement: [{ Effect: 'Allow', Principal: '*', Action: 's3:GetObject', Resource: 'arn:aws:s3:::alpha/*' }],
  })
  await s3.putBucketPolicy({ Bucket: 'alpha', Policy })
  const quota = Buffer.from('{"Bytes":1000}')
  await send(asker(endpoint), { method: 'POST', target: '/alpha?x-quota=', body: quota })

  const all = await ask(asker(endpoint), 'GET', DESCRIBE)
  t.match(all, {
    status: 200,
    Buckets: [
      {
        Bucket: 'alpha',
        Numbers: { Objects: 1, Bytes: 50, NoncurrentVersions: 0, NoncurrentBytes: 0, DeleteMarkers: 0 },
        Versioning: 'Disabled',
        ObjectLock: false,
        Encryption: 'None',
        Quota: { Bytes: 1000 },
        Stored: { Objects: 1, Bytes: 50 },
        Public: true,
      },
      {
        Bucket: 'beta',
        Numbers: { Objects: 1, Bytes: 3, NoncurrentVersions: 2, NoncurrentBytes: 12, DeleteMarkers: 1 },
        Versioning: 'Enabled',
        Stored: { Objects: 4, Bytes: 15 },
        Public: false,
      },
      { Bucket: 'empty', Numbers: { Objects: 0, Bytes: 0 }, Quota: {} },
      { Bucket: 'locked', Versioning: 'Enabled', ObjectLock: true },
    ],
  })
  const page = await ask(asker(endpoint), 'GET', `${DESCRIBE}?from=beta&max-items=1`)
  t.match(page, { Buckets: [{ Bucket: 'beta' }], IsTruncated: true })
  t.equal(page.Buckets.length, 1)

  const ofReader = await ask(asker(endpoint, reader), 'GET', DESCRIBE)
  t.same(
    ofReader.Buckets.map(({ Bucket, Numbers }: { Bucket: string; Numbers?: object }) => [
      Bucket,
      Numbers !== undefined,
    ]),
    [
      ['alpha', true],
      ['beta', false],
    ],
    'numbers are those of the whole bucket, for callers who may list it',
  )
  t.same(Object.keys(ofReader.Buckets[1]), ['Bucket', 'Created'])
  const ofPoliced = await ask(asker(endpoint, policed), 'GET', DESCRIBE)
  t.match(ofPoliced.Buckets[0], { Bucket: 'alpha', Numbers: { Objects: 1 }, Versioning: 'Disabled' })
  t.same(Object.keys(ofPoliced.Buckets[0]).sort(), ['Bucket', 'Created', 'Numbers', 'Versioning'])
  t.same(Object.keys(ofPoliced.Buckets[1]).sort(), ['Bucket', 'Created', 'Versioning'])
})

t.test('another gateway has no numbers, and a count is kept', async (t) => {
  const { endpoint, s3 } = await startInProcess(t, 'legacy', { identities: [owner, reader, counter] })
  await s3.createBucket({ Bucket: 'alpha' })
  for (const Key of ['a', 'b/c']) await s3.putObject({ Bucket: 'alpha', Key, Body: 'four' })
  const who = asker(endpoint)
  const before = await ask(who, 'GET', DESCRIBE)
  t.match(before.Buckets, [{ Bucket: 'alpha', Versioning: 'Disabled', ObjectLock: false }])
  t.notOk('Numbers' in before.Buckets[0] || 'Counted' in before.Buckets[0])
  for (const limited of [reader, counter])
    t.match(await ask(asker(endpoint, limited), 'POST', '/alpha?x-usage='), { status: 403, Code: 'AccessDenied' })
  const counted = await ask(who, 'POST', '/alpha?x-usage=')
  t.match(counted, { status: 200, Objects: 2, Bytes: 8, Classes: [{ Objects: 2, Bytes: 8 }] })
  t.match(await ask(who, 'GET', DESCRIBE), { Buckets: [{ Counted: { Objects: 2, Bytes: 8, At: counted.Counted } }] })
})

t.test('a count that begins later needs the right to list then', async (t) => {
  const kind = countJob({ now: Date.now } as Parameters<typeof countJob>[0])
  const asked: unknown[] = []
  const requireAction = async (...what: unknown[]) => {
    asked.push(what)
    throw new S3Error('AccessDenied')
  }
  const job = { input: { bucket: 'alpha' }, context: { authorizer: { requireAction } } }
  await t.rejects(Promise.resolve(kind.run(job as unknown as Parameters<typeof kind.run>[0])), { code: 'AccessDenied' })
  t.same(asked, [['s3:ListBucket', { bucket: 'alpha' }]])
})

/** What a listing of all versions has. */
async function walked(t: Test, server: Endpoint, Bucket: string) {
  const s3 = sdkFor(t, server)
  const sum = { Objects: 0, Bytes: 0, NoncurrentVersions: 0, NoncurrentBytes: 0, DeleteMarkers: 0 }
  const { Versions = [], DeleteMarkers = [] } = await s3.listObjectVersions({ Bucket })
  for (const { IsLatest, Size = 0 } of Versions) {
    sum[IsLatest ? 'Objects' : 'NoncurrentVersions']++
    sum[IsLatest ? 'Bytes' : 'NoncurrentBytes'] += Size
  }
  return { ...sum, DeleteMarkers: DeleteMarkers.length }
}

t.test('the numbers outlast a server that is killed amid writes', async (t: Test) => {
  const server = await startDealgate(t)
  const buckets = ['plain', 'versioned']
  let s3 = sdkFor(t, server)
  for (const Bucket of buckets) await s3.createBucket({ Bucket })
  await s3.putBucketVersioning({ Bucket: 'versioned', VersioningConfiguration: { Status: 'Enabled' } })
  const change = async (): Promise<unknown> => {
    const Bucket = buckets[randomInt(2)] as string
    const Key = `key-${randomInt(12)}`
    const what = randomInt(6)
    if (what < 3) return s3.putObject({ Bucket, Key, Body: 'x'.repeat(randomInt(60_000)) })
    if (what === 3) return s3.deleteObject({ Bucket, Key })
    if (what === 4) return s3.copyObject({ Bucket, Key, CopySource: `plain/key-${randomInt(12)}` })
    const { UploadId } = await s3.createMultipartUpload({ Bucket, Key })
    const { ETag } = await s3.uploadPart({ Bucket, Key, UploadId, PartNumber: 1, Body: 'part' })
    return s3.completeMultipartUpload({ Bucket, Key, UploadId, MultipartUpload: { Parts: [{ ETag, PartNumber: 1 }] } })
  }
  for (let death = 0; death < 2; death++) {
    let ended = 0
    const isNear = new Promise<void>((resolve) => {
      const many = Array.from({ length: 80 }, () =>
        change()
          .catch(() => {})
          .then(() => ++ended >= 40 && resolve()),
      )
      void Promise.all(many).then(() => resolve())
    })
    await isNear
    await server.kill9()
    await server.start()
    s3 = sdkFor(t, server)
  }
  const { Buckets } = await ask(server, 'GET', DESCRIBE)
  for (const { Bucket, Numbers } of Buckets) t.same(Numbers, await walked(t, server, Bucket), Bucket)
  t.ok(Buckets[0].Numbers.Objects > 0)
})

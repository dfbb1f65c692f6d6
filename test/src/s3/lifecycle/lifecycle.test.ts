import { dirname, join } from 'node:path'
import type { LifecycleRule, S3 } from '@aws-sdk/client-s3'
import t from 'tap'
import { DAY_MS } from '../../../../common/time.js'
import { openAccountRegistry } from '../../../../services/gateway/accounts/account-registry.js'
import { bucketLifecycle } from '../../../../src/s3/lifecycle/operations.js'
import { dueAfter } from '../../../../src/s3/lifecycle/rules.js'
import { GatewayUser } from '../../../support/gateway/gateway-user.js'
import { sdkFor } from '../../../support/programs/sdk.js'
import { type InProcess, startInProcess } from '../../../support/server/in-process.js'
import { modes } from '../../../support/server/modes.js'
import { farFromMidnight, until } from '../../../support/waiting.js'

const Bucket = 'bucket'

async function keys(s3: S3): Promise<string[]> {
  const { Contents = [] } = await s3.listObjectsV2({ Bucket })
  return Contents.map(({ Key = '' }) => Key)
}

const setRules = (s3: S3, Rules: LifecycleRule[], bucket = Bucket) =>
  s3.putBucketLifecycleConfiguration({ Bucket: bucket, LifecycleConfiguration: { Rules } })

/** Waits for a complete pass over the bucket that has ended after so many lines of the log. */
async function nextPass({ lines }: InProcess, from = lines.length): Promise<void> {
  await until('a pass is over', () =>
    lines.slice(from).some((line) => (line.lifecycle as { complete?: boolean } | undefined)?.complete),
  )
}

for (const mode of modes) {
  t.test(`${mode}: rules are kept, shown, and carried out`, async (t) => {
    await farFromMidnight()
    let now = Date.now()
    const server = await startInProcess(t, mode, { now: () => now, lifecycleIntervalMs: 20 })
    const { s3 } = server
    await s3.createBucket({ Bucket })
    await t.rejects(s3.getBucketLifecycleConfiguration({ Bucket }), { name: 'NoSuchLifecycleConfiguration' })
    const put = async (Key: string, size = 1, Tagging?: string) =>
      s3.putObject({ Bucket, Key, Body: 'x'.repeat(size), ...(Tagging && { Tagging }) })
    await put('logs/a')
    await put('logs/sub/ä +&b')
    await put('keep/a')
    await put('big/large', 2000)
    await put('big/small', 10)
    await put('tagged/later')
    await put('tagged/yes', 1, 'temp=yes')
    await put('off/x')
    await put('dated/x')
    await s3.putObjectTagging({ Bucket, Key: 'tagged/later', Tagging: { TagSet: [{ Key: 'temp', Value: 'no' }] } })
    const abandoned = await s3.createMultipartUpload({ Bucket, Key: 'logs/abandoned' })
    await s3.createMultipartUpload({ Bucket, Key: 'keep/going' })

    const Rules: LifecycleRule[] = [
      {
        ID: 'logs & more',
        Filter: { Prefix: 'logs/' },
        Status: 'Enabled',
        Expiration: { Days: 1 },
        AbortIncompleteMultipartUpload: { DaysAfterInitiation: 1 },
      },
      {
        ID: 'big',
        Filter: { And: { Prefix: 'big/', ObjectSizeGreaterThan: 1000 } },
        Status: 'Enabled',
        Expiration: { Days: 1 },
      },
      { ID: 'temp', Filter: { Tag: { Key: 'temp', Value: 'yes' } }, Status: 'Enabled', Expiration: { Days: 2 } },
      { ID: 'off', Filter: { Prefix: 'off/' }, Status: 'Disabled', Expiration: { Days: 1 } },
      { ID: 'dated', Filter: { Prefix: 'dated/' }, Status: 'Enabled', Expiration: { Date: new Date('2020-01-01') } },
    ]
    const before = server.lines.length
    t.equal((await setRules(s3, Rules)).TransitionDefaultMinimumObjectSize, 'all_storage_classes_128K')
    const shown = await s3.getBucketLifecycleConfiguration({ Bucket })
    t.same(shown.Rules, Rules)
    t.equal(shown.TransitionDefaultMinimumObjectSize, 'all_storage_classes_128K')

    const expiry = new Date(dueAfter(Date.now(), 1)).toUTCString()
    const expected = `expiry-date="${expiry}", rule-id="logs%20%26%20more"`
    t.equal((await put('logs/a')).Expiration, expected)
    t.equal((await s3.headObject({ Bucket, Key: 'logs/a' })).Expiration, expected)
    const got = await s3.getObject({ Bucket, Key: 'logs/a' })
    t.equal(await got.Body?.transformToString(), 'x')
    t.equal(got.Expiration, expected)
    t.equal((await put('keep/a')).Expiration, undefined)
    t.match((await put('tagged/yes', 1, 'temp=yes')).Expiration, 'rule-id="temp"')
    t.equal((await put('tagged/no', 1)).Expiration, undefined)

    // The day is done before the clock is set: what is under way would go by either time.
    await nextPass(server, before)
    const rest = [
      'big/large',
      'big/small',
      'keep/a',
      'logs/a',
      'logs/sub/ä +&b',
      'off/x',
      'tagged/later',
      'tagged/no',
      'tagged/yes',
    ]
    t.same(await keys(s3), rest, 'and nothing else')

    // Midnight is the moment, not the end of so many days.
    now = dueAfter(Date.now(), 1) - 1
    await nextPass(server)
    t.same(await keys(s3), rest)
    now += 1
    await nextPass(server)
    t.same(await keys(s3), ['big/small', 'keep/a', 'off/x', 'tagged/later', 'tagged/no', 'tagged/yes'])
    const uploads = await s3.listMultipartUploads({ Bucket })
    t.same(
      uploads.Uploads?.map(({ Key }) => Key),
      ['keep/going'],
      `${abandoned.UploadId} was aborted`,
    )
    await s3.putObjectTagging({ Bucket, Key: 'tagged/later', Tagging: { TagSet: [{ Key: 'temp', Value: 'yes' }] } })
    now += DAY_MS
    await nextPass(server)
    t.same(await keys(s3), ['big/small', 'keep/a', 'off/x', 'tagged/no'], 'tags that came later count')

    // Another process with the same data goes on.
    await put('logs/again')
    await server.restart({ now: () => Date.now() + 10 * DAY_MS })
    await until('the object is gone', async () => !(await keys(s3)).includes('logs/again'))

    await s3.deleteBucketLifecycle({ Bucket })
    await t.rejects(s3.getBucketLifecycleConfiguration({ Bucket }), { name: 'NoSuchLifecycleConfiguration' })
    await s3.deleteBucketLifecycle({ Bucket })
  })
}

t.test('what is wrong is refused, and a new bucket inherits nothing', async (t) => {
  const { s3 } = await startInProcess(t, 'full')
  const days: LifecycleRule = { Filter: {}, Status: 'Enabled', Expiration: { Days: 1 } }
  await t.rejects(setRules(s3, [days], 'missing'), { name: 'NoSuchBucket' })
  await t.rejects(s3.getBucketLifecycleConfiguration({ Bucket: 'missing' }), { name: 'NoSuchBucket' })
  await s3.createBucket({ Bucket })
  await t.rejects(
    s3.putBucketLifecycleConfiguration({
      Bucket,
      LifecycleConfiguration: { Rules: [days] },
      TransitionDefaultMinimumObjectSize: 'everything' as never,
    }),
    { name: 'InvalidArgument' },
  )
  await t.rejects(s3.getBucketLifecycleConfiguration({ Bucket }), { name: 'NoSuchLifecycleConfiguration' })
  await s3.putBucketLifecycleConfiguration({
    Bucket,
    LifecycleConfiguration: { Rules: [days] },
    TransitionDefaultMinimumObjectSize: 'varies_by_storage_class',
  })
  const shown = await s3.getBucketLifecycleConfiguration({ Bucket })
  t.equal(shown.TransitionDefaultMinimumObjectSize, 'varies_by_storage_class')
  t.ok(shown.Rules?.[0]?.ID, 'a rule without id has got one')
  await s3.deleteBucket({ Bucket })
  await s3.createBucket({ Bucket })
  await t.rejects(s3.getBucketLifecycleConfiguration({ Bucket }), { name: 'NoSuchLifecycleConfiguration' })
})

t.test('a gateway without versions has no rules for them', async (t) => {
  const { s3 } = await startInProcess(t, 'legacy')
  await s3.createBucket({ Bucket })
  const rule: LifecycleRule = {
    ...{ Filter: {}, Status: 'Enabled', NoncurrentVersionExpiration: { NoncurrentDays: 1 } },
  }
  await t.rejects(setRules(s3, [rule]), { name: 'NotImplemented', message: /NoncurrentVersionExpiration/ })
})

t.test('rules of another account work with the rights of that account, and spend nothing', async (t) => {
  const server = await startInProcess(t, 'full', { lifecycleIntervalMs: 20 })
  const registry = await openAccountRegistry(join(dirname(server.data), 'services'))
  t.teardown(() => registry.close())
  const { accessKey, secretKey } = await registry.add('other')
  const other = { accessKeyId: 'of-other', secretAccessKey: 'secret-of-other', account: { accessKey, secretKey } }
  const own = { accessKeyId: 'test-key', secretAccessKey: 'test-secret' }
  await server.restart({ identities: [own, other] })
  const { accessKeyId, secretAccessKey } = other
  const s3 = sdkFor(t, {
    endpoint: server.endpoint,
    region: 'us-east-1',
    accessKey: accessKeyId,
    secretKey: secretAccessKey,
  })
  await s3.createBucket({ Bucket })
  for (const Key of ['old/a', 'kept']) await s3.putObject({ Bucket, Key, Body: 'x' })
  const rule: LifecycleRule = { ID: 'x', Filter: { Prefix: 'old/' }, Status: 'Enabled' }
  const Expiration = { Date: new Date('2020-01-01') }
  await t.rejects(setRules(server.s3, [{ ...rule, Expiration }]), { name: 'AccessDenied' }, 'not the server’s')
  await setRules(s3, [{ ...rule, Expiration }])
  await until('the object is gone', async () => (await keys(s3)).join() === 'kept')
  t.match((await s3.getBucketLifecycleConfiguration({ Bucket })).Rules, [{ ID: 'x' }])

  await server.restart({ identities: [own, other], lifecycleIntervalMs: 0 })
  await s3.putObject({ Bucket, Key: 'old/b', Body: 'x' })
  await setRules(s3, [{ ...rule, ID: 'y', Expiration }])
  await server.restart({ identities: [own] })
  await until('the log says why nothing is done', () => server.lines.some(({ msg }) => /rules wait/.test(`${msg}`)))
  await server.restart({ identities: [own, other] })
  await until('it is gone, too', async () => (await keys(s3)).join() === 'kept')
})

t.test('a transition in a bucket of another account would be paid by the server', async (t) => {
  const rule =
    '<Rule><Filter/><Status>Enabled</Status><Transition><Days>1</Days><StorageClass>GLACIER</StorageClass></Transition></Rule>'
  const bytes = Buffer.from(`<LifecycleConfiguration>${rule}</LifecycleConfiguration>`)
  const request = { bucket: Bucket, headers: {}, body: { collect: async () => ({ bytes }) } }
  const context = {
    limits: { maxDocumentBytes: 1000 },
    plugins: { storageClasses: new Map([['GLACIER', {}]]) },
    authorizer: { ownerOf: async () => ({ owner: 'another', by: 'key' }) },
    settings: { set: async () => t.fail('they were kept') },
  }
  const put = bucketLifecycle.find(({ name }) => name === 'PutBucketLifecycleConfiguration')
  await t.rejects(put?.run(request as never, context as never) as Promise<unknown>, { code: 'NotImplemented' })
})

t.test('a bucket that a client has deleted and made again keeps its data', async (t) => {
  let now = Date.now()
  const server = await startInProcess(t, 'full', { now: () => now, lifecycleIntervalMs: 20 })
  const { s3 } = server
  const other = new GatewayUser(server.gateway)
  await other.login()
  const rule: LifecycleRule = {
    ID: 'all',
    Filter: { Prefix: '' },
    Status: 'Enabled',
    Expiration: { Date: new Date('2020-01-01') },
    AbortIncompleteMultipartUpload: { DaysAfterInitiation: 1 },
  }
  for (const name of [Bucket, 'control']) {
    await s3.createBucket({ Bucket: name })
    await setRules(s3, [rule], name)
  }
  await other.remake(Bucket)
  await s3.putObject({ Bucket, Key: 'new', Body: 'x' })
  // Twice: when what the first turn was to do is done, the second has gone over everything.
  for (const Key of ['first', 'second']) {
    await s3.putObject({ Bucket: 'control', Key, Body: 'x' })
    now += DAY_MS
    await until(`${Key} is gone`, async () => {
      const { Contents = [] } = await s3.listObjectsV2({ Bucket: 'control' })
      return Contents.length === 0
    })
  }
  t.same(await keys(s3), ['new'])
  t.equal((await s3.headObject({ Bucket, Key: 'new' })).Expiration, undefined)
  await setRules(s3, [rule])
  await until('its own rules are carried out', async () => (await keys(s3)).length === 0)
})

import { dirname, join } from 'node:path'
import type { Event } from '@aws-sdk/client-s3'
import t from 'tap'
import { openAccountRegistry } from '../../../services/gateway/accounts/account-registry.js'
import { OWN_ID } from '../../../src/auth/credentials.js'
import { bareKeys, controlKeys, fileKeys } from '../../support/content/keys.js'
import {
  Bucket,
  bytesOf,
  configure,
  inventory,
  inventoryRows,
  KEYS,
  REPORTS,
  read,
  runNow,
  states,
} from '../../support/plugins/inventory-scene.js'
import { sdkFor } from '../../support/programs/sdk.js'
import { startInProcess } from '../../support/server/in-process.js'
import { modes } from '../../support/server/modes.js'
import { until } from '../../support/waiting.js'
import { WebhookReceiver } from '../../support/webhook-receiver.js'

const SDK = { region: 'us-east-1' }

const ALL = [
  ...[
    'Size',
    'LastModifiedDate',
    'StorageClass',
    'ETag',
    'IsMultipartUploaded',
    'ReplicationStatus',
    'EncryptionStatus',
  ],
  ...['ObjectLockRetainUntilDate', 'ObjectLockMode', 'ObjectLockLegalHoldStatus', 'IntelligentTieringAccessTier'],
  ...['BucketKeyStatus', 'ChecksumAlgorithm', 'ObjectAccessControlList', 'ObjectOwner', 'LifecycleExpirationDate'],
  ...['x-BytesAt', 'x-Tags', 'x-Encryption', 'x-EncryptionLabel'],
]

for (const mode of modes) {
  t.test(`${mode}: every object is in it once, with all fields of S3`, async (t) => {
    const server = await startInProcess(t, mode, { standard: { inventory: { intervalMs: 0, fileRows: 7 } } })
    const { s3, endpoint } = server
    for (const bucket of [Bucket, REPORTS]) await s3.createBucket({ Bucket: bucket })
    const keys = mode === 'full' ? [...fileKeys, ...controlKeys, ...bareKeys.map(({ key }) => key)] : [...fileKeys]
    for (const Key of keys) await s3.putObject({ Bucket, Key, Body: Key })
    await s3.putObject({ Bucket, Key: 'tagged', Body: 'x', Tagging: 'a=b&%C3%BC=%3D', ChecksumAlgorithm: 'SHA256' })
    await s3.putObject({ Bucket, Key: 'secret', Body: 'secret', ServerSideEncryption: 'AES256' })
    await s3.putObject({ Bucket, Key: 'cheap', Body: 'cheap', StorageClass: 'STANDARD_IA' })
    const { UploadId } = await s3.createMultipartUpload({ Bucket, Key: 'parts' })
    const { ETag } = await s3.uploadPart({ Bucket, Key: 'parts', UploadId, PartNumber: 1, Body: 'part' })
    const MultipartUpload = { Parts: [{ ETag, PartNumber: 1 }] }
    await s3.completeMultipartUpload({ Bucket, Key: 'parts', UploadId, MultipartUpload })
    keys.push('tagged', 'secret', 'cheap', 'parts')
    const Rules = [{ ID: 'x', Filter: { Prefix: 'cheap' }, Status: 'Enabled' as const, Expiration: { Days: 3 } }]
    await s3.putBucketLifecycleConfiguration({ Bucket, LifecycleConfiguration: { Rules } })

    await configure(s3, 'all', { fields: ALL })
    const { Manifest, Rows, Files } = await inventory(endpoint, 'all')
    t.match(Manifest, /^inv\/source\/all\/\d{4}-\d\d-\d\dT\d\d-\d\dZ\/manifest\.json$/)
    t.same([Rows, Files], [keys.length, 1], 'a page is not split, and all of them fit into one')
    const rows = await inventoryRows(s3, Manifest)
    t.same(rows.map(({ Key }) => Key).sort(), [...keys].sort())
    const { manifest } = await read(s3, Manifest)
    t.equal(manifest.fileSchema, `Bucket, Key, ${manifest.fileSchema.split(', ').slice(2).join(', ')}`)
    t.match(manifest, {
      sourceBucket: Bucket,
      destinationBucket: 'arn:aws:s3:::reports',
      version: '2016-11-30',
      creationTimestamp: /^\d{13}$/,
      fileFormat: 'CSV',
    })
    const links = (
      await bytesOf(s3, `inv/source/all/hive/dt=${Manifest.slice(15, 31).replace('T', '-')}/symlink.txt`)
    ).toString()
    t.equal(links, manifest.files.map(({ key }: { key: string }) => `s3://reports/${key}\n`).join(''))

    const row = (key: string) => rows.find(({ Key }) => Key === key) ?? {}
    for (const key of ['tagged', 'secret', 'cheap', 'parts', 'plus+plus']) {
      const head = await s3.headObject({ Bucket, Key: key })
      t.match(row(key), {
        Bucket,
        Size: String(head.ContentLength),
        ETag: head.ETag?.slice(1, -1),
        StorageClass: head.StorageClass ?? 'STANDARD',
        EncryptionStatus: key === 'secret' ? 'SSE-S3' : 'NOT-SSE',
        IsMultipartUploaded: String(key === 'parts'),
        'x-BytesAt': 'gateway',
        'x-Encryption': key === 'secret' ? 'AES256' : '',
        'x-EncryptionLabel': key === 'secret' ? 'kept' : '',
        ObjectLockMode: '',
        ReplicationStatus: '',
      })
      t.equal(Date.parse(row(key).LastModifiedDate ?? '') - (head.LastModified?.getTime() ?? 0) < 1000, true)
    }
    t.same(JSON.parse(row('tagged')['x-Tags'] ?? ''), { a: 'b', ü: '=' })
    t.equal(row('tagged').ChecksumAlgorithm, 'SHA256')
    t.equal(row('parts').ChecksumAlgorithm, 'CRC64NVME', 'the default of an upload that names none')
    const owner = (await s3.listBuckets({})).Owner?.ID
    t.equal(row('parts').ObjectOwner, owner)
    t.match(JSON.parse(Buffer.from(row('parts').ObjectAccessControlList ?? '', 'base64').toString()), {
      grants: [{ canonicalId: owner, type: 'CanonicalUser', permission: 'FULL_CONTROL' }],
    })
    t.match(row('cheap').LifecycleExpirationDate, /T00:00:00\.000Z$/)

    await configure(s3, 'part', { more: { Filter: { Prefix: 'UPPER/' } } })
    t.same(await inventoryRows(s3, (await inventory(endpoint, 'part')).Manifest), [
      { Bucket, Key: 'UPPER/lower/Upper' },
    ])
    await configure(s3, 'none', { more: { Filter: { Prefix: 'nothing' } } })
    const none = await inventory(endpoint, 'none')
    t.match(none, { Rows: 0, Files: 1 }, 'an empty inventory has one empty file')
    t.same(await inventoryRows(s3, none.Manifest), [])

    await configure(s3, 'self', { to: Bucket, destination: { Encryption: { SSES3: {} } } })
    const self = await inventory(endpoint, 'self')
    t.equal((await inventoryRows(s3, self.Manifest, Bucket)).length, keys.length)
    const sealed = await s3.headObject({ Bucket, Key: self.Manifest })
    t.equal(sealed.ServerSideEncryption, 'AES256', 'the destination is encrypted as the configuration says')
    const again = await inventory(endpoint, 'self')
    t.not(again.Manifest, self.Manifest, 'two runs in a minute have two manifests')
    t.equal(
      (await inventoryRows(s3, again.Manifest, Bucket)).length,
      keys.length + 4,
      'the bucket lists its own inventories',
    )
    t.match(await states(endpoint), [{ Id: 'all', LastStatus: 'Complete', Rows }, {}, {}, {}])
  })
}

t.test('all versions, delete markers and locks', async (t) => {
  const { s3, endpoint } = await startInProcess(t, 'full', { standard: { inventory: { intervalMs: 0 } } })
  await s3.createBucket({ Bucket, ObjectLockEnabledForBucket: true })
  await s3.createBucket({ Bucket: REPORTS })
  const RetainUntilDate = new Date(Date.now() + 3600_000)
  const first = await s3.putObject({
    ...{ Bucket, Key: 'k', Body: 'one', ObjectLockMode: 'COMPLIANCE', ChecksumAlgorithm: 'CRC32' },
    ObjectLockRetainUntilDate: RetainUntilDate,
  })
  const second = await s3.putObject({
    Bucket,
    Key: 'k',
    Body: 'two!',
    ObjectLockLegalHoldStatus: 'ON',
    ChecksumAlgorithm: 'CRC32',
  })
  const marker = await s3.deleteObject({ Bucket, Key: 'k' })
  const other = await s3.putObject({
    Bucket,
    Key: 'l',
    Body: 'other',
    ObjectLockLegalHoldStatus: 'ON',
    ChecksumAlgorithm: 'CRC32',
  })
  const fields = ['Size', 'ObjectLockMode', 'ObjectLockRetainUntilDate', 'ObjectLockLegalHoldStatus']
  await configure(s3, 'versions', { fields, more: { IncludedObjectVersions: 'All' } })
  const rows = await inventoryRows(s3, (await inventory(endpoint, 'versions')).Manifest)
  const locked = { ObjectLockMode: '', ObjectLockRetainUntilDate: '', ObjectLockLegalHoldStatus: 'On' }
  const row = (Key: string, VersionId: string | undefined, IsLatest: string, IsDeleteMarker: string, more: object) => ({
    ...{ Bucket, Key, VersionId, IsLatest, IsDeleteMarker },
    ...more,
  })
  t.same(rows, [
    row('k', marker.VersionId, 'true', 'true', { Size: '', ...locked, ObjectLockLegalHoldStatus: '' }),
    row('k', second.VersionId, 'false', 'false', { Size: '4', ...locked }),
    row('k', first.VersionId, 'false', 'false', {
      ...{ Size: '3', ObjectLockMode: 'Compliance', ObjectLockRetainUntilDate: RetainUntilDate.toISOString() },
      ObjectLockLegalHoldStatus: 'Off',
    }),
    row('l', other.VersionId, 'true', 'false', { Size: '5', ...locked }),
  ])
  await configure(s3, 'current', { fields })
  t.same(await inventoryRows(s3, (await inventory(endpoint, 'current')).Manifest), [
    { Bucket, Key: 'l', Size: '5', ...locked },
  ])
})

t.test('a schedule writes at once, and then every day, and says why it fails', async (t) => {
  let now = Date.now()
  const receiver = await WebhookReceiver.start(t)
  const webhooks = [{ name: 'hook', url: receiver.url }]
  const writer = { accessKeyId: 'writer', secretAccessKey: 'writer-secret' }
  const boss = { accessKeyId: 'test-key', secretAccessKey: 'test-secret' }
  const rights = (...buckets: string[]) => buckets.map((bucket) => ({ bucket, access: 'readwrite' as const }))
  const both = { ...writer, rights: rights(Bucket, REPORTS) }
  const standard = { inventory: { intervalMs: 20 }, notifications: { webhooks, firstRetryMs: 5 } }
  const options = { now: () => now, standard }
  const server = await startInProcess(t, 'full', { ...options, identities: [boss, both] })
  const { s3, endpoint } = server
  for (const bucket of [Bucket, REPORTS]) await s3.createBucket({ Bucket: bucket })
  await s3.putObject({ Bucket, Key: 'k', Body: 'k' })
  const rule = { Id: 'r', QueueArn: 'arn:dealgate:webhook:::hook', Events: ['s3:Inventory:*' as Event] }
  await s3.putBucketNotificationConfiguration({ Bucket, NotificationConfiguration: { QueueConfigurations: [rule] } })

  const own = sdkFor(t, { ...SDK, endpoint, accessKey: 'writer', secretKey: 'writer-secret' })
  await s3.createBucket({ Bucket: 'others' })
  await t.rejects(configure(own, 'daily', { to: 'others' }), { name: 'AccessDenied' }, 'it is checked at once')
  await configure(own, 'daily', { enabled: true })
  const state = async () => (await states(endpoint))[0]
  await until('the first is complete', async () => (await state()).LastStatus === 'Complete')
  const first = await state()
  t.match(first, { SetBy: 'writer', Rows: 1, Files: 1 })

  await server.restart({ identities: [boss, { ...writer, rights: rights(Bucket) }] })
  now += 24 * 3600_000
  await until('the second has failed', async () => (await state()).LastStatus === 'Failed')
  t.match(await state(), { FailureCode: 'AccessDenied', FailureMessage: /right/ })
  await until('it is told', () => receiver.events.length > 0)
  t.same(receiver.events, ['Inventory:Failed daily'])
  t.match(receiver.taken.at(-1)?.record, { inventoryEventData: { errorCode: 'AccessDenied' } })
  t.ok(server.lines.some(({ msg, inventory }) => msg === 'an inventory failed' && inventory === 'daily'))

  await server.restart({ identities: [boss] })
  now += 24 * 3600_000
  await until('the key pair is missed', async () => /no longer exists/.test((await state()).FailureMessage))

  await server.restart({ identities: [boss, both] })
  now += 24 * 3600_000
  await until('the fourth is complete', async () => (await state()).LastStatus === 'Complete')
  t.not((await state()).Manifest, first.Manifest)
  const { Contents = [] } = await s3.listObjectsV2({ Bucket: REPORTS, Prefix: 'inv/source/daily/20' })
  t.equal(Contents.length, 4, 'two manifests with their checksums')
})

t.test('what is not there when it runs', async (t) => {
  const { s3, endpoint } = await startInProcess(t, 'full', { standard: { inventory: { intervalMs: 0 } } })
  for (const bucket of [Bucket, REPORTS]) await s3.createBucket({ Bucket: bucket })
  t.match(await runNow(endpoint, 'absent'), { status: 404, json: { Code: 'NoSuchConfiguration' } })
  await configure(s3, 'one')
  await s3.deleteBucket({ Bucket: REPORTS })
  t.match(await runNow(endpoint, 'one'), { status: 404, json: { Code: 'NoSuchBucket' } })
  t.match(await states(endpoint), [{ Id: 'one', LastStatus: 'Failed', FailureCode: 'NoSuchBucket' }])
})

t.test('the policy of another account lets it be written there, until it no longer does', async (t) => {
  const server = await startInProcess(t, 'full', { standard: { inventory: { intervalMs: 0 } } })
  const registry = await openAccountRegistry(join(dirname(server.data), 'services'))
  t.teardown(() => registry.close())
  const { accessKey, secretKey } = await registry.add('other')
  const account = { accessKey, secretKey }
  const other = { accessKeyId: 'of-other', secretAccessKey: 'secret-of-other', account }
  await server.restart({ identities: [KEYS, other] })
  const { s3, endpoint } = server
  const theirs = sdkFor(t, { ...SDK, endpoint, accessKey: other.accessKeyId, secretKey: other.secretAccessKey })
  await s3.createBucket({ Bucket })
  await s3.putObject({ Bucket, Key: 'k', Body: 'k' })
  await theirs.createBucket({ Bucket: 'theirs' })
  const allow = (Resource: string) =>
    theirs.putBucketPolicy({
      Bucket: 'theirs',
      Policy: JSON.stringify({
        Version: '2012-10-17',
        Statement: [{ Effect: 'Allow', Principal: { CanonicalUser: OWN_ID }, Action: 's3:PutObject', Resource }],
      }),
    })
  await t.rejects(configure(s3, 'one', { to: 'theirs' }), { name: 'AccessDenied' })
  await allow('arn:aws:s3:::theirs/elsewhere/*')
  await t.rejects(configure(s3, 'one', { to: 'theirs' }), { name: 'AccessDenied' })
  await allow('arn:aws:s3:::theirs/inv/source/*')
  await configure(s3, 'one', { to: 'theirs' })
  const { Manifest } = await inventory(endpoint, 'one')
  t.same(await inventoryRows(theirs, Manifest, 'theirs'), [{ Bucket, Key: 'k' }])
  await allow('arn:aws:s3:::theirs/elsewhere/*')
  t.match(await runNow(endpoint, 'one'), { status: 403, json: { Code: 'AccessDenied' } })
  t.equal((await theirs.listObjectsV2({ Bucket: 'theirs', Prefix: 'inv/source/one/20' })).KeyCount, 2)
  await t.rejects(
    theirs.putBucketInventoryConfiguration({ Bucket, Id: 'x', InventoryConfiguration: undefined }),
    { name: 'AccessDenied' },
    'nor does another account set one here',
  )
})

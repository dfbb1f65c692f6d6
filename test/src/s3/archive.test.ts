import { GetObjectAttributesCommand, type PutObjectCommandInput } from '@aws-sdk/client-s3'
import t, { type Test } from 'tap'
import { S3Error } from '../../../common/errors/s3-error.js'
import type { ClassWrite, PresenceFacts, RestoreOrder, TransitionedObject } from '../../../src/api/archive.js'
import type { Context, StorageClass } from '../../../src/api/context.js'
import type { ObjectEvent } from '../../../src/api/hooks.js'
import type { Archive } from '../../../src/api/object-records.js'
import type { Plugin } from '../../../src/api/plugin.js'
import type { StoredObject } from '../../../src/api/store.js'
import { readRestoreOrder } from '../../../src/s3/object/restore.js'
import { archiveHeaders, metadataHeaders, notReadable, presenceOf } from '../../../src/s3/object/storage-class.js'
import { startInProcess } from '../../support/server/in-process.js'
import { signedRequest } from '../../support/sign/signed-request.js'

const UNTIL = Date.UTC(2026, 11, 21)
const owner = { accessKeyId: 'test-key', secretAccessKey: 'test-secret' }

t.test('what is reported of an object, by where its bytes are', async (t) => {
  const offered = new Map(
    ['GLACIER', 'GLACIER_IR', 'DEEP_ARCHIVE'].map((name) => [name, { name, transition: async () => false }]),
  )
  const reporting = { storageClasses: offered, outputMetadata: () => true }
  const back = { ongoing: true } as const
  const until = { until: UNTIL }
  const dated = `ongoing-request="false", expiry-date="Mon, 21 Dec 2026 00:00:00 GMT"`
  const table: [PresenceFacts, state: string, storageClass: string | undefined, restore: string | undefined][] = [
    [{ cold: false }, 'hot', undefined, undefined],
    [{ cold: false, archive: { facts: { cid: 'x' } } }, 'hot', undefined, undefined],
    [{ cold: false, archive: { storageClass: 'GLACIER' } }, 'archived', 'GLACIER_IR', undefined],
    [{ cold: true }, 'cold', 'GLACIER', undefined],
    [{ cold: true, archive: { storageClass: 'NOBODYS' } }, 'cold', 'GLACIER', undefined],
    [{ cold: true, archive: { storageClass: 'DEEP_ARCHIVE' } }, 'cold', 'DEEP_ARCHIVE', undefined],
    [{ cold: true, archive: { storageClass: 'GLACIER', restore: until } }, 'cold', 'GLACIER', undefined],
    [
      { cold: true, archive: { storageClass: 'GLACIER', restore: back } },
      'restoring',
      'GLACIER',
      'ongoing-request="true"',
    ],
    [{ cold: false, archive: { storageClass: 'DEEP_ARCHIVE', restore: until } }, 'restored', 'DEEP_ARCHIVE', dated],
  ]
  for (const [placed, state, storageClass, restore] of table) {
    const name = JSON.stringify(placed)
    t.equal(presenceOf(placed, offered).state, state, name)
    const headers = archiveHeaders(placed, reporting)
    t.same([headers['x-amz-storage-class'], headers['x-amz-restore']], [storageClass, restore], name)
    const readable = !placed.cold && restore === undefined
    if (readable)
      t.notMatch(storageClass ?? 'STANDARD', /^(GLACIER|DEEP_ARCHIVE)$/, `aws s3 cp does not pass over ${name}`)
  }
  t.match(notReadable({ cold: false }, offered), { status: 403, fields: { StorageClass: 'GLACIER' } })

  const object = {
    metadata: { cid: 'stale', own: 'mine' },
    archive: { facts: { cid: 'fresh', own: 'theirs', 'Bad Name': 'x', note: 'für ☂' } },
  }
  const told = metadataHeaders(object as unknown as StoredObject, {
    ...reporting,
    outputMetadata: (name) => name === 'cid',
  })
  t.same(told, {
    'x-amz-meta-cid': 'fresh',
    'x-amz-meta-own': 'mine',
    'x-amz-meta-note': '=?UTF-8?Q?f=C3=BCr_=E2=98=82?=',
  })
})

t.test('what RestoreObject is asked for', async (t) => {
  const read = (inner: string) => readRestoreOrder(Buffer.from(`<RestoreRequest>${inner}</RestoreRequest>`))
  t.same(await readRestoreOrder(Buffer.alloc(0)), { days: 0, tier: 'Standard', description: '' })
  t.same(await read(''), { days: 0, tier: 'Standard', description: '' })
  t.same(
    await read(
      '<Days>7</Days><GlacierJobParameters><Tier>Bulk</Tier></GlacierJobParameters><Description>d</Description>',
    ),
    { days: 7, tier: 'Bulk', description: 'd' },
  )
  t.match(await read('<Tier>Expedited</Tier><Days>1</Days>'), { tier: 'Expedited' })
  const refused: [string, string][] = [
    ['<Days>0</Days>', 'InvalidArgument'],
    ['<Days>-1</Days>', 'InvalidArgument'],
    ['<Days>2147483647</Days>', 'InvalidArgument'],
    ['<Days>soon</Days>', 'MalformedXML'],
    ['<Days>1</Days><Days>2</Days>', 'MalformedXML'],
    ['<Dais>1</Dais>', 'MalformedXML'],
    ['<GlacierJobParameters/>', 'MalformedXML'],
    ['<GlacierJobParameters><Tier>Slow</Tier></GlacierJobParameters>', 'InvalidTier'],
    ['<GlacierJobParameters><Tier>Bulk</Tier></GlacierJobParameters><Tier>Standard</Tier>', 'MalformedXML'],
    ['<Type>SELECT</Type><SelectParameters/>', 'NotImplemented'],
    ['<OutputLocation/>', 'NotImplemented'],
  ]
  for (const [inner, code] of refused) await t.rejects(read(inner), { code }, inner)
  await t.rejects(readRestoreOrder(Buffer.from('<Restore/>')), { code: 'MalformedXML' })
})

/** A plugin that keeps objects in an archive of its own; `seen` is what it was told. */
function archivePlugin() {
  const seen = {
    admitted: [] as ClassWrite[],
    stored: [] as TransitionedObject[],
    dropped: 0,
    orders: [] as RestoreOrder[],
    moved: [] as ObjectEvent[],
    own: undefined as Context | undefined,
    outcome: { status: 202 } as { status: 200 | 202 },
  }
  let jobs = 0
  const offer = (name: string): StorageClass => ({
    name,
    async admit(write) {
      if (write.metadata['deal-terms'] === 'none') throw new S3Error('InvalidStorageClass')
      seen.admitted.push(write)
      const jobId = `j-${++jobs}`
      return {
        archive: { storageClass: name, jobId, facts: { cid: `bafy-${jobs}` } },
        async stored(object) {
          seen.stored.push(object)
          return { 'x-dealgate-job-id': jobId }
        },
        async dropped() {
          seen.dropped++
        },
      }
    },
    transition: async () => true,
    async restore(_object, order) {
      seen.orders.push(order)
      return seen.outcome
    },
  })
  const plugin: Plugin = {
    name: 'attic',
    operations: [],
    storageClasses: [offer('GLACIER'), offer('GLACIER_IR'), { name: 'DEEP_ARCHIVE', transition: async () => true }],
    outputMetadata: ['cid', 'deal-status*'],
    hooks: { objectMoved: async (event) => void seen.moved.push(event) },
    async start(host) {
      seen.own = host.own
    },
  }
  return { plugin, seen }
}

async function started(t: Test, mode: 'full' | 'legacy' = 'full') {
  const { plugin, seen } = archivePlugin()
  const { endpoint, s3 } = await startInProcess(t, mode, { identities: [owner], plugins: [plugin] })
  await s3.createBucket({ Bucket: 'box' })
  const at = (Key: string) => ({ Bucket: 'box', Key })
  const put = (key: string, more: Partial<PutObjectCommandInput> = {}) =>
    s3.putObject({ ...at(key), Body: 'content', StorageClass: 'GLACIER', ...more })
  const head = (key: string) => s3.headObject(at(key))
  /** Puts this in the place of what is remembered of the object's copies. */
  const annotate = async (key: string, archive: Archive) => {
    const store = seen.own?.store
    const object = await store?.head('box', key)
    return store?.annotate('box', key, object?.revision ?? '', () => archive)
  }
  return { s3, endpoint, seen, at, put, head, annotate }
}

for (const mode of ['full', 'legacy'] as const)
  t.test(`${mode}: a copy in place goes by the conditions of its client`, async (t) => {
    const { endpoint, put, head, seen } = await started(t, mode)
    await put('a', { StorageClass: 'STANDARD' })
    const named = { 'x-amz-copy-source': '/box/a', 'x-amz-storage-class': 'GLACIER' }
    const copy = (headers: Record<string, string>) =>
      signedRequest(endpoint, owner, { method: 'PUT', path: '/box/a', headers: { ...named, ...headers } })
    t.equal((await copy({ 'if-match': '"0"' })).status, 412)
    t.equal((await copy({ 'if-none-match': '*' })).status, 412)
    t.same([(await head('a')).StorageClass, seen.admitted], [undefined, []])
    t.equal((await copy({ 'if-match': (await head('a')).ETag ?? '' })).status, 200)
    t.equal((await head('a')).StorageClass, 'GLACIER_IR')
  })

t.test('writes into an archive class', async (t) => {
  const { s3, endpoint, seen, at, put, head } = await started(t)
  const rejects = (send: Promise<unknown>, name: string, of = t) => of.rejects(send, { name })

  await put('a', { Metadata: { cid: 'stale', 'deal-status-of': 'x', 'deal-terms': 'miner=f01', own: 'mine' } })
  const { StorageClass, Metadata } = await head('a')
  t.match([StorageClass, Metadata], ['GLACIER_IR', { cid: 'bafy-1', 'deal-terms': 'miner=f01', own: 'mine' }])
  t.notOk(Metadata?.['deal-status-of'], 'what the plugin tells is not stored')
  t.match(seen.admitted[0], { operation: 'PutObject', bucket: 'box', key: 'a', size: 7 })
  t.match(seen.admitted[0], { encrypted: false, storedSize: 7 })
  t.match(seen.stored[0], { bucket: 'box', key: 'a', size: 7, etag: '9a0364b9e99bb480dd25e1f0284c8555' })
  const told = await signedRequest(endpoint, owner, { method: 'HEAD', path: '/box/a' })
  t.equal(told.headers['x-dealgate-job-id'], 'j-1')

  await rejects(put('no', { StorageClass: 'OUTPOSTS' }), 'InvalidStorageClass')
  await rejects(put('no', { StorageClass: 'DEEP_ARCHIVE' }), 'InvalidStorageClass')
  await rejects(put('no', { Metadata: { 'deal-terms': 'none' } }), 'InvalidStorageClass')
  t.equal(seen.dropped, 0)
  await rejects(put('a', { IfNoneMatch: '*' }), 'PreconditionFailed')
  await rejects(put('no', { ContentMD5: 'AAAAAAAAAAAAAAAAAAAAAA==' }), 'BadDigest')
  t.equal(seen.dropped, 2, 'what was admitted and not stored is dropped')
  await rejects(head('no'), 'NotFound')
  await put('hot', { StorageClass: 'STANDARD_IA' })
  t.equal((await head('hot')).StorageClass, 'STANDARD_IA', 'a class that only names a price is a label')

  t.test('by copying', async (t) => {
    seen.admitted.length = 0
    const before = await head('hot')
    const copy = { ...at('hot'), CopySource: 'box/hot', StorageClass: 'GLACIER' } as const
    await s3.copyObject(copy)
    t.match(seen.admitted, [{ operation: 'CopyObject', kept: { key: 'hot' } }])
    const after = await head('hot')
    t.equal(after.StorageClass, 'GLACIER_IR')
    t.same([after.ETag, after.LastModified], [before.ETag, before.LastModified], 'its bytes were not touched')
    const described = { Metadata: { colour: 'red' }, ContentType: 'a/b', MetadataDirective: 'REPLACE' } as const
    await s3.copyObject({ ...copy, ...described, StorageClass: 'GLACIER_IR' })
    t.match(await head('hot'), { Metadata: { colour: 'red' }, ContentType: 'a/b' })
    await rejects(s3.copyObject({ ...copy, CopySourceIfMatch: '"0"' }), 'PreconditionFailed', t)

    await s3.copyObject({ ...copy, ...at('copied') })
    t.match(seen.admitted.at(-1), { key: 'copied', kept: undefined, size: 7 })
    t.equal((await head('copied')).StorageClass, 'GLACIER_IR')
    await s3.copyObject({ ...at('plain'), CopySource: 'box/copied' })
    t.match(await head('plain'), { StorageClass: undefined, Metadata: { colour: 'red' } })
    t.notOk((await head('plain')).Metadata?.cid, 'a copy is a new object')
    await s3.copyObject({ ...at('hot'), CopySource: 'box/hot', StorageClass: 'STANDARD' })
    t.equal((await head('hot')).StorageClass, undefined)
  })

  t.test('by copying, where the bucket encrypts by default', async (t) => {
    await put('to encrypt', { StorageClass: 'STANDARD' })
    const byDefault = { ApplyServerSideEncryptionByDefault: { SSEAlgorithm: 'AES256' } } as const
    await s3.putBucketEncryption({ Bucket: 'box', ServerSideEncryptionConfiguration: { Rules: [byDefault] } })
    const onto = { ...at('to encrypt'), CopySource: 'box/to%20encrypt', StorageClass: 'GLACIER' } as const
    t.equal((await s3.copyObject(onto)).ServerSideEncryption, 'AES256')
    t.match(seen.admitted.at(-1), { key: 'to encrypt', kept: undefined }, 'the archive does not get the bytes in place')
    t.match(await head('to encrypt'), { ServerSideEncryption: 'AES256', StorageClass: 'GLACIER_IR' })
    const again = await s3.copyObject({ ...onto, StorageClass: 'GLACIER_IR' })
    t.match(seen.admitted.at(-1), { key: 'to encrypt', kept: { key: 'to encrypt' } }, 'encrypted bytes stay in place')
    t.equal(again.ServerSideEncryption, 'AES256')
    await s3.deleteBucketEncryption({ Bucket: 'box' })
  })

  t.test('what the gateway is to have of encrypted objects', async (t) => {
    const ofKey = { SSECustomerAlgorithm: 'AES256', SSECustomerKey: 'k'.repeat(32) }
    const created = { ...at('parts sealed'), StorageClass: 'GLACIER', ...ofKey } as const
    await put('of a key', ofKey)
    const { headers } = seen.admitted.at(-1) as ClassWrite
    t.equal(headers['x-amz-server-side-encryption-customer-algorithm'], 'AES256')
    t.notMatch(JSON.stringify(headers), Buffer.from('k'.repeat(32)).toString('base64'), 'the key is not for plugins')
    const { UploadId } = await s3.createMultipartUpload(created)
    t.match(seen.admitted.at(-1), { encrypted: true, storedSize: undefined })
    const upload = { ...at('parts sealed'), UploadId }
    const { ETag } = await s3.uploadPart({ ...upload, PartNumber: 1, Body: 'part', ...ofKey })
    await s3.completeMultipartUpload({ ...upload, MultipartUpload: { Parts: [{ PartNumber: 1, ETag }] } })
    await put('of the server', { ServerSideEncryption: 'AES256' })
    await s3.copyObject({ ...at('copied'), CopySource: 'box/of the server', StorageClass: 'GLACIER' })
    for (const key of ['of a key', 'parts sealed', 'of the server', 'copied']) {
      const { storedSize } = (await seen.own?.store.head('box', key)) ?? {}
      t.ok(storedSize && storedSize > 7, key)
      t.match(
        seen.admitted.findLast((one) => one.key === key),
        { encrypted: true, storedSize },
        key,
      )
    }
    t.notMatch(JSON.stringify(seen.admitted.at(-1)), 'encryption', 'the order may have a key')
  })

  t.test('in parts', async (t) => {
    const create = { ...at('parts'), StorageClass: 'GLACIER', Metadata: { cid: 'stale' } } as const
    await rejects(s3.createMultipartUpload({ ...create, StorageClass: 'OUTPOSTS' }), 'InvalidStorageClass')
    seen.dropped = 0
    const { UploadId } = await s3.createMultipartUpload(create)
    t.equal(seen.dropped, 1, 'nothing is to be stored yet')
    const upload = { ...at('parts'), UploadId }
    const { ETag } = await s3.uploadPart({ ...upload, PartNumber: 1, Body: 'part' })
    t.equal((await s3.listParts(upload)).StorageClass, 'GLACIER')
    t.match((await s3.listMultipartUploads({ Bucket: 'box' })).Uploads, [{ StorageClass: 'GLACIER' }])
    const complete = { ...upload, MultipartUpload: { Parts: [{ PartNumber: 1, ETag }] } }
    const told = await s3.completeMultipartUpload(complete)
    t.match(seen.stored.at(-1), { key: 'parts', size: 4 })
    const { StorageClass, Metadata } = await head('parts')
    t.equal(StorageClass, 'GLACIER_IR')
    t.match(Metadata?.cid, /^bafy-/)
    const stored = seen.stored.length
    t.equal((await s3.completeMultipartUpload(complete)).ETag, told.ETag)
    t.equal(seen.stored.length, stored, 'completing again stores nothing')

    const second = await s3.createMultipartUpload(create)
    const other = { ...at('parts'), UploadId: second.UploadId }
    const part = await s3.uploadPart({ ...other, PartNumber: 1, Body: 'part 2' })
    const { uploads } = (seen.own as Context).state
    const finish = uploads.finish.bind(uploads)
    uploads.finish = async () => {
      throw new S3Error('ServiceUnavailable')
    }
    const completed = { ...other, MultipartUpload: { Parts: [{ PartNumber: 1, ETag: part.ETag }] } }
    await rejects(s3.completeMultipartUpload(completed), 'ServiceUnavailable', t)
    uploads.finish = finish
    const admitted = seen.admitted.length
    t.equal((await s3.completeMultipartUpload(completed)).ETag, (await head('parts')).ETag)
    t.equal(seen.admitted.length, admitted, 'what was stored and not put on record is not stored, and paid for, again')

    const again = await s3.createMultipartUpload({ ...create, StorageClass: 'STANDARD' })
    await s3.abortMultipartUpload({ ...at('parts'), UploadId: again.UploadId })
  })

  t.test('not without a signature', async (t) => {
    const actions = ['AbortMultipartUpload', 'DeleteObject', 'ListMultipartUploadParts', 'PutObject']
    const statements = [
      { Action: actions.map((name) => `s3:${name}`), Resource: 'arn:aws:s3:::box/*' },
      { Action: ['s3:GetBucketLocation', 's3:ListBucketMultipartUploads'], Resource: 'arn:aws:s3:::box' },
    ]
    const Statement = statements.map((statement) => ({ Effect: 'Allow', Principal: '*', ...statement }))
    await s3.putBucketPolicy({ Bucket: 'box', Policy: JSON.stringify({ Statement }) })
    const send = (headers: Record<string, string>) =>
      fetch(`${endpoint}/box/open`, { method: 'PUT', body: 'x', headers })
    t.equal((await send({})).status, 200)
    t.equal((await send({ 'x-amz-storage-class': 'GLACIER' })).status, 403)
    const form = new FormData()
    for (const [name, value] of [
      ['key', 'form'],
      ['x-amz-storage-class', 'GLACIER'],
    ])
      form.append(name as string, value as string)
    form.append('file', new Blob(['x']), 'f')
    t.equal((await fetch(`${endpoint}/box`, { method: 'POST', body: form })).status, 403)
    const signed = { method: 'POST', path: '/box', headers: { 'content-type': 'multipart/form-data; boundary=b' } }
    const parts = ['key"\r\n\r\nform', 'x-amz-storage-class"\r\n\r\nGLACIER', 'file"; filename="f"\r\n\r\nby form']
    const text = parts.map((part) => `--b\r\nContent-Disposition: form-data; name="${part}\r\n`).join('')
    const answer = await signedRequest(endpoint, owner, { ...signed, body: `${text}--b--\r\n` })
    t.equal(answer.status, 204)
    t.match(answer.headers['x-dealgate-job-id'], /^j-/)
    t.equal((await head('form')).StorageClass, 'GLACIER_IR')
  })
})

t.test('reports and restores', async (t) => {
  const { s3, endpoint, seen, at, put, head, annotate } = await started(t)
  await put('hot', { StorageClass: 'STANDARD' })
  await put('here')
  await put('back')
  await put('coming')
  await annotate('back', { storageClass: 'GLACIER', restore: { until: UNTIL } })
  await annotate('coming', { storageClass: 'GLACIER', restore: { ongoing: true } })

  const listed = (await s3.listObjectsV2({ Bucket: 'box', OptionalObjectAttributes: ['RestoreStatus'] })).Contents
  t.same(
    listed?.map(({ Key, StorageClass, RestoreStatus }) => [Key, StorageClass, RestoreStatus]),
    [
      ['back', 'GLACIER', { IsRestoreInProgress: false, RestoreExpiryDate: new Date(UNTIL) }],
      ['coming', 'GLACIER', { IsRestoreInProgress: true }],
      ['here', 'GLACIER_IR', undefined],
      ['hot', 'STANDARD', undefined],
    ],
  )
  for (const query of [{}, { 'list-type': '2' }, { versions: '' }] as Record<string, string>[]) {
    const ask = (headers: Record<string, string>) =>
      signedRequest(endpoint, owner, { method: 'GET', path: '/box', query, headers })
    const wanted = 'x-amz-optional-object-attributes'
    t.notMatch((await ask({})).body, 'RestoreStatus')
    t.match(
      (await ask({ [wanted]: 'RestoreStatus' })).body,
      '<RestoreStatus><IsRestoreInProgress>true</IsRestoreInProgress></RestoreStatus>',
    )
    t.equal((await ask({ [wanted]: 'Colour' })).code, 'InvalidArgument')
  }
  const attributes = new GetObjectAttributesCommand({ ...at('back'), ObjectAttributes: ['StorageClass'] })
  t.equal((await s3.send(attributes)).StorageClass, 'GLACIER')
  t.equal((await head('back')).Restore, 'ongoing-request="false", expiry-date="Mon, 21 Dec 2026 00:00:00 GMT"')
  const read = await s3.getObject(at('back'))
  t.same([read.StorageClass, await read.Body?.transformToString()], ['GLACIER', 'content'])

  const restore = (key: string, RestoreRequest?: object) => s3.restoreObject({ ...at(key), RestoreRequest })
  const statusOf = async (key: string, request?: object) => (await restore(key, request)).$metadata.httpStatusCode
  await t.rejects(restore('hot'), { name: 'InvalidObjectState', $metadata: { httpStatusCode: 403 } })
  await t.rejects(restore('none'), { name: 'NoSuchKey' })
  await t.rejects(restore('coming'), { name: 'RestoreAlreadyInProgress', $metadata: { httpStatusCode: 409 } })
  t.equal(await statusOf('here', { Days: 3 }), 200)
  t.same(seen.orders, [], 'there is nothing to do')
  seen.outcome = { status: 200 }
  t.equal(await statusOf('back', { Days: 3, GlacierJobParameters: { Tier: 'Bulk' } }), 200)
  t.same(seen.moved, [])
  seen.outcome = { status: 202 }
  t.equal(await statusOf('back'), 202)
  t.same(seen.orders, [
    { days: 3, tier: 'Bulk', description: '' },
    { days: 0, tier: 'Standard', description: '' },
  ])
  t.match(seen.moved, [{ name: 'ObjectRestore:Post', bucket: 'box', key: 'back', origin: { accessKeyId: 'test-key' } }])
  t.equal(seen.moved.length, 1)
})

import { createHash, randomBytes } from 'node:crypto'
import type { S3 } from '@aws-sdk/client-s3'
import t from 'tap'
import type { ObjectEvent } from '../../../../src/api/hooks.js'
import { definePlugin } from '../../../../src/plugins/define-plugin.js'
import { GatewayUser } from '../../../support/gateway/gateway-user.js'
import { startInProcess } from '../../../support/server/in-process.js'

// Reads, writes and removals of versions over HTTP, with the embedded gateway.

const keys = { accessKeyId: 'owner', secretAccessKey: 'owner-secret' }
const Bucket = 'box'
const UNKNOWN = '0'.repeat(32)

async function startBox(t: Parameters<typeof startInProcess>[0], options: Parameters<typeof startInProcess>[2] = {}) {
  const server = await startInProcess(t, 'full', { identities: [keys], ...options })
  await server.s3.createBucket({ Bucket })
  const user = new GatewayUser(server.gateway)
  await user.login()
  return Object.assign(server, {
    /** Sets the versioning of the bucket, past the proxy. */
    async versioning(status: 'Enabled' | 'Suspended') {
      await user.call('web.SetBucketVersioning', { bucketName: Bucket, status })
    },
    /** Versions and markers as the gateway has them, newest first. */
    async versions(key: string) {
      const page = await user.call('web.ListObjectVersions', { bucketName: Bucket, prefix: key })
      const list = page.versions as { name: string; versionId: string; deleteMarker?: true }[]
      return list.filter(({ name }) => name === key).map((one) => (one.deleteMarker ? '-' : '') + one.versionId)
    },
  })
}

async function textOf(s3: S3, Key: string, VersionId?: string): Promise<string | undefined> {
  const { Body } = await s3.getObject({ Bucket, Key, ...(VersionId !== undefined && { VersionId }) })
  return Body?.transformToString()
}

/** `<status> <code>` and the headers of a marker. */
function failed(error: unknown): { said: string; marker: string | undefined } {
  const { name, $metadata, $response } = error as {
    name: string
    $metadata: { httpStatusCode: number }
    $response?: { headers: Record<string, string> }
  }
  return { said: `${$metadata.httpStatusCode} ${name}`, marker: $response?.headers['x-amz-delete-marker'] }
}

const failure = (call: Promise<unknown>) => call.then(() => ({ said: 'no failure', marker: undefined }), failed)

t.test('versions of an object', async (t) => {
  const box = await startBox(t)
  const { s3 } = box
  const Key = 'a/b ü'
  const first = await s3.putObject({ Bucket, Key, Body: 'null', Tagging: 'of=null', Metadata: { of: 'null' } })
  t.equal(first.VersionId, undefined)
  t.equal((await s3.headObject({ Bucket, Key })).VersionId, undefined, 'a bucket that was never versioned')

  await box.versioning('Enabled')
  const one = String(
    (await s3.putObject({ Bucket, Key, Body: 'one', Tagging: 'of=one', ChecksumAlgorithm: 'SHA256' })).VersionId,
  )
  const two = String((await s3.putObject({ Bucket, Key, Body: 'the two', Tagging: 'of=two' })).VersionId)
  t.match(one, /^[0-9a-f]{32}$/)
  t.same(await box.versions(Key), [two, one, 'null'])

  t.test('each has its bytes, ETag, checksum, tags and metadata', async (t) => {
    const md5 = (text: string) => `"${createHash('md5').update(text).digest('hex')}"`
    for (const [id, text, tag] of [
      ['null', 'null', 'null'],
      [one, 'one', 'one'],
      [two, 'the two', 'two'],
      [undefined, 'the two', 'two'],
    ] as const) {
      const VersionId = id
      t.equal(await textOf(s3, Key, id), text)
      const head = await s3.headObject({ Bucket, Key, VersionId })
      t.equal(head.VersionId, id ?? two)
      t.equal(head.ETag, md5(text))
      t.equal(head.ContentLength, text.length)
      t.equal(head.Metadata?.of, tag === 'null' ? 'null' : undefined)
      const tags = await s3.getObjectTagging({ Bucket, Key, VersionId })
      t.same([tags.TagSet, tags.VersionId], [[{ Key: 'of', Value: tag }], id ?? two])
      const part = await s3.getObject({ Bucket, Key, VersionId, Range: 'bytes=1-2' })
      t.equal(await part.Body?.transformToString(), text.slice(1, 3))
      t.equal((await failure(s3.getObject({ Bucket, Key, VersionId, Range: 'bytes=9-' }))).said, '416 InvalidRange')
    }
    const checked = await s3.headObject({ Bucket, Key, VersionId: one, ChecksumMode: 'ENABLED' })
    t.equal(checked.ChecksumSHA256, createHash('sha256').update('one').digest('base64'))
    const attributes = await s3.getObjectAttributes({
      ...{ Bucket, Key, VersionId: one },
      ObjectAttributes: ['ETag', 'ObjectSize', 'Checksum'],
    })
    t.equal(attributes.ObjectSize, 3)
    t.equal(attributes.VersionId, one)
    t.equal(attributes.Checksum?.ChecksumSHA256, checked.ChecksumSHA256)
  })

  t.test('conditions are about the version', async (t) => {
    const IfMatch = first.ETag
    t.equal((await s3.headObject({ Bucket, Key, VersionId: 'null', IfMatch })).VersionId, 'null')
    t.equal((await failure(s3.getObject({ Bucket, Key, IfMatch }))).said, '412 PreconditionFailed')
    t.equal((await failure(s3.getObject({ Bucket, Key, VersionId: one, IfMatch }))).said, '412 PreconditionFailed')
  })

  t.test('ids that name no version', async (t) => {
    t.equal((await failure(s3.getObject({ Bucket, Key, VersionId: UNKNOWN }))).said, '404 NoSuchVersion')
    t.equal((await failure(s3.headObject({ Bucket, Key, VersionId: UNKNOWN }))).said, '404 NotFound')
    t.equal((await failure(s3.getObjectTagging({ Bucket, Key, VersionId: UNKNOWN }))).said, '404 NoSuchVersion')
    t.equal((await failure(s3.getObject({ Bucket, Key, VersionId: 'x' }))).said, '400 InvalidArgument')
    t.equal((await failure(s3.getObject({ Bucket, Key: 'none', VersionId: one }))).said, '404 NoSuchVersion')
  })

  t.test('tags of one version change alone', async (t) => {
    const TagSet = [{ Key: 'new', Value: 'one' }]
    t.equal((await s3.putObjectTagging({ Bucket, Key, VersionId: one, Tagging: { TagSet } })).VersionId, one)
    t.same((await s3.getObjectTagging({ Bucket, Key, VersionId: one })).TagSet, TagSet)
    t.same((await s3.getObjectTagging({ Bucket, Key })).TagSet, [{ Key: 'of', Value: 'two' }])
    t.same((await s3.getObjectTagging({ Bucket, Key, VersionId: 'null' })).TagSet, [{ Key: 'of', Value: 'null' }])
    t.equal((await s3.deleteObjectTagging({ Bucket, Key })).VersionId, two)
    t.same((await s3.getObjectTagging({ Bucket, Key })).TagSet, [])
    t.same((await s3.getObjectTagging({ Bucket, Key, VersionId: one })).TagSet, TagSet)
    const { ETag } = await s3.headObject({ Bucket, Key, VersionId: one })
    t.equal(ETag, `"${createHash('md5').update('one').digest('hex')}"`)
  })

  t.test('copies', async (t) => {
    const source = `${Bucket}/${encodeURIComponent(Key)}`
    const copied = await s3.copyObject({ Bucket, Key: 'copy', CopySource: `${source}?versionId=${one}` })
    t.equal(copied.CopySourceVersionId, one)
    t.match(copied.VersionId, /^[0-9a-f]{32}$/)
    t.equal(await textOf(s3, 'copy'), 'one')
    t.equal((await s3.copyObject({ Bucket, Key: 'copy', CopySource: source })).CopySourceVersionId, two)
    const unknown = s3.copyObject({ Bucket, Key: 'copy', CopySource: `${source}?versionId=${UNKNOWN}` })
    t.equal((await failure(unknown)).said, '404 NoSuchVersion')
    t.equal((await failure(s3.copyObject({ Bucket, Key, CopySource: source }))).said, '400 InvalidRequest')

    const restored = await s3.copyObject({ Bucket, Key, CopySource: `${source}?versionId=null` })
    t.equal(restored.CopySourceVersionId, 'null')
    t.equal(await textOf(s3, Key), 'null', 'an earlier version is current again')
    t.same(await box.versions(Key), [restored.VersionId, two, one, 'null'])
    const { UploadId } = await s3.createMultipartUpload({ Bucket, Key: 'parts' })
    const CopySource = `${source}?versionId=${two}`
    const part = await s3.uploadPartCopy({ Bucket, Key: 'parts', UploadId, PartNumber: 1, CopySource })
    t.equal(part.CopySourceVersionId, two)
    const Parts = [{ PartNumber: 1, ETag: part.CopyPartResult?.ETag }]
    const done = await s3.completeMultipartUpload({ Bucket, Key: 'parts', UploadId, MultipartUpload: { Parts } })
    t.match(done.VersionId, /^[0-9a-f]{32}$/)
    t.equal(await textOf(s3, 'parts'), 'the two')
    const again = await s3.completeMultipartUpload({ Bucket, Key: 'parts', UploadId, MultipartUpload: { Parts } })
    t.equal(again.VersionId, done.VersionId, 'a repeated call makes no other version')
    t.same(await box.versions('parts'), [done.VersionId])
    await s3.deleteObject({ Bucket, Key, VersionId: restored.VersionId })
  })

  t.test('a removal adds a delete marker', async (t) => {
    const marker = await s3.deleteObject({ Bucket, Key })
    t.equal(marker.DeleteMarker, true)
    t.same(await box.versions(Key), [`-${marker.VersionId}`, two, one, 'null'])
    t.same(await failure(s3.getObject({ Bucket, Key })), { said: '404 NoSuchKey', marker: 'true' })
    t.same(await failure(s3.headObject({ Bucket, Key })), { said: '404 NotFound', marker: 'true' })
    const VersionId = marker.VersionId
    t.same(await failure(s3.getObject({ Bucket, Key, VersionId })), { said: '405 MethodNotAllowed', marker: 'true' })
    t.equal((await failure(s3.headObject({ Bucket, Key, VersionId }))).marker, 'true')
    t.equal((await failure(s3.getObjectTagging({ Bucket, Key, VersionId }))).said, '405 MethodNotAllowed')
    const CopySource = `${Bucket}/${encodeURIComponent(Key)}?versionId=${VersionId}`
    t.equal((await failure(s3.copyObject({ Bucket, Key: 'copy', CopySource }))).said, '400 InvalidRequest')
    t.equal((await failure(s3.putObject({ Bucket, Key, Body: '', IfMatch: first.ETag }))).said, '404 NoSuchKey')
    t.equal(await textOf(s3, Key, two), 'the two')
    t.same((await s3.getObjectTagging({ Bucket, Key, VersionId: one })).TagSet, [{ Key: 'new', Value: 'one' }])

    const undone = await s3.deleteObject({ Bucket, Key, VersionId })
    t.same([undone.DeleteMarker, undone.VersionId], [true, VersionId])
    t.equal(await textOf(s3, Key), 'the two')
  })

  t.test('a removal by id takes one version, with all that belongs to it', async (t) => {
    const three = await s3.putObject({ Bucket, Key, Body: 'three', Tagging: 'of=three' })
    const { VersionId } = three
    t.equal((await s3.deleteObject({ Bucket, Key, VersionId })).VersionId, VersionId)
    t.equal((await failure(s3.getObject({ Bucket, Key, VersionId }))).said, '404 NoSuchVersion')
    t.equal(await textOf(s3, Key), 'the two', 'the one before is current again')
    t.same((await s3.getObjectTagging({ Bucket, Key })).TagSet, [])
    t.equal((await s3.deleteObject({ Bucket, Key, VersionId })).DeleteMarker, undefined, 'a version that is gone')
    await s3.deleteObject({ Bucket, Key, VersionId: two })
    t.equal(await textOf(s3, Key), 'one')
    t.same((await s3.getObjectTagging({ Bucket, Key })).TagSet, [{ Key: 'new', Value: 'one' }])
    const listed = await s3.listObjectsV2({ Bucket, Prefix: Key })
    t.same(
      listed.Contents?.map(({ Key, Size, ChecksumAlgorithm }) => [Key, Size, ChecksumAlgorithm]),
      [[Key, 3, ['SHA256']]],
      'a listing shows the record of the version that is current',
    )
    await s3.deleteObject({ Bucket, Key, VersionId: one })
    t.same((await s3.getObjectTagging({ Bucket, Key })).TagSet, [{ Key: 'of', Value: 'null' }])
    await s3.deleteObject({ Bucket, Key, VersionId: 'null' })
    t.same(await failure(s3.getObject({ Bucket, Key })), { said: '404 NoSuchKey', marker: undefined })
    t.same(await box.versions(Key), [])
  })
})

t.test('an ACL opens its version alone', async (t) => {
  const box = await startBox(t)
  const { s3, endpoint } = box
  const Key = 'k'
  await box.versioning('Enabled')
  await s3.putBucketOwnershipControls({
    Bucket,
    OwnershipControls: { Rules: [{ ObjectOwnership: 'BucketOwnerPreferred' }] },
  })
  const open = async () => {
    const answer = await fetch(`${endpoint}/${Bucket}/${Key}`)
    return answer.status === 200 ? answer.text() : String(answer.status)
  }
  await s3.putObject({ Bucket, Key, Body: 'public', ACL: 'public-read', Tagging: 'of=public' })
  t.equal(await open(), 'public')
  const { VersionId: secret } = await s3.putObject({ Bucket, Key, Body: 'private', Tagging: 'of=private' })
  t.equal(await open(), '403')
  const { VersionId: marker } = await s3.deleteObject({ Bucket, Key })
  await s3.deleteObject({ Bucket, Key, VersionId: secret })
  t.not(await open(), 'public')
  await s3.deleteObject({ Bucket, Key, VersionId: marker })
  t.equal(await open(), 'public', 'it is current again')
  t.same((await s3.getObjectTagging({ Bucket, Key })).TagSet, [{ Key: 'of', Value: 'public' }])
  const bare = await s3.putObject({ Bucket, Key, Body: 'bare' })
  t.equal(await open(), '403', 'a version without a record has not that of another')
  const grants = async (VersionId?: string) => (await s3.getObjectAcl({ Bucket, Key, VersionId })).Grants?.length
  t.same([await grants(), await grants(bare.VersionId)], [1, 1])
  await s3.deleteObject({ Bucket, Key, VersionId: bare.VersionId })
  t.equal(await open(), 'public')
})

t.test('suspended versioning', async (t) => {
  const box = await startBox(t)
  const { s3 } = box
  const Key = 'k'
  await box.versioning('Enabled')
  const one = (await s3.putObject({ Bucket, Key, Body: 'one', Tagging: 'of=one' })).VersionId
  await box.versioning('Suspended')
  for (const Body of ['n1', 'n2']) {
    t.equal((await s3.putObject({ Bucket, Key, Body, Tagging: `of=${Body}` })).VersionId, 'null')
    t.same(await box.versions(Key), ['null', one])
    t.equal(await textOf(s3, Key, 'null'), Body)
    t.same((await s3.getObjectTagging({ Bucket, Key })).TagSet, [{ Key: 'of', Value: Body }])
  }
  t.same((await s3.getObjectTagging({ Bucket, Key, VersionId: one })).TagSet, [{ Key: 'of', Value: 'one' }])
  const removed = await s3.deleteObject({ Bucket, Key })
  t.same([removed.DeleteMarker, removed.VersionId], [true, 'null'])
  t.same(await box.versions(Key), ['-null', one])
  t.equal(await textOf(s3, Key, one), 'one')
  await s3.putObject({ Bucket, Key, Body: 'n3' })
  t.same(await box.versions(Key), ['null', one])
  t.same((await s3.getObjectTagging({ Bucket, Key })).TagSet, [], 'no tags of an object that is gone')
})

t.test('encrypted versions', async (t) => {
  const box = await startBox(t)
  const { s3 } = box
  const Key = 'secret'
  await box.versioning('Enabled')
  const bodies = [randomBytes(200_000), randomBytes(150_000)]
  const ids: (string | undefined)[] = []
  for (const Body of bodies)
    ids.push((await s3.putObject({ Bucket, Key, Body, ServerSideEncryption: 'AES256' })).VersionId)
  for (const _ of [1, 2]) {
    for (const [i, VersionId] of ids.entries()) {
      const got = await s3.getObject({ Bucket, Key, VersionId })
      t.ok(bodies[i]?.equals((await got.Body?.transformToByteArray()) ?? Buffer.alloc(0)), 'whole')
      const part = await s3.getObject({ Bucket, Key, VersionId, Range: 'bytes=140000-140099' })
      t.ok(bodies[i]?.subarray(140_000, 140_100).equals((await part.Body?.transformToByteArray()) ?? Buffer.alloc(0)))
    }
  }
  const CopySource = `${Bucket}/${Key}?versionId=${ids[0]}`
  await s3.copyObject({ Bucket, Key: 'copy', CopySource })
  const copy = await s3.getObject({ Bucket, Key: 'copy' })
  t.ok(bodies[0]?.equals((await copy.Body?.transformToByteArray()) ?? Buffer.alloc(0)))
  t.equal(copy.ServerSideEncryption, 'AES256')
})

t.test('events tell the version', async (t) => {
  const events: string[] = []
  const take = async ({ name, versionId, revision }: ObjectEvent) => {
    events.push([name, versionId, ...(revision === undefined ? [] : ['with its revision'])].join(' '))
  }
  const hooks = { objectStored: take, objectDeleted: take, objectTagged: take }
  const watch = definePlugin({ name: 'watch', summary: 'Keeps the events.', create: () => ({ operations: [], hooks }) })
  const box = await startBox(t, { plugins: [watch({})] })
  const { s3 } = box
  const Key = 'k'
  await s3.putObject({ Bucket, Key, Body: '' })
  await box.versioning('Enabled')
  const { VersionId: one } = await s3.putObject({ Bucket, Key, Body: '' })
  await s3.putObjectTagging({ Bucket, Key, VersionId: 'null', Tagging: { TagSet: [{ Key: 'a', Value: 'b' }] } })
  const { VersionId: marker } = await s3.deleteObject({ Bucket, Key })
  await s3.deleteObject({ Bucket, Key, VersionId: marker })
  await s3.deleteObject({ Bucket, Key, VersionId: one })
  t.same(events, [
    'ObjectCreated:Put ',
    `ObjectCreated:Put ${one}`,
    'ObjectTagging:Put null',
    `ObjectRemoved:DeleteMarkerCreated ${marker}`,
    `ObjectRemoved:Delete ${marker}`,
    `ObjectRemoved:Delete ${one} with its revision`,
  ])
})

t.test('a gateway without versions knows "null" alone', async (t) => {
  const { s3 } = await startInProcess(t, 'legacy', { identities: [keys] })
  const Key = 'a'
  await s3.createBucket({ Bucket })
  await s3.putObject({ Bucket, Key, Body: 'text' })
  t.equal(await textOf(s3, Key, 'null'), 'text')
  t.equal((await failure(s3.getObject({ Bucket, Key, VersionId: UNKNOWN }))).said, '400 InvalidArgument')
  t.equal((await failure(s3.deleteObject({ Bucket, Key, VersionId: UNKNOWN }))).said, '400 InvalidArgument')
  t.equal(await textOf(s3, Key), 'text')
  await s3.deleteObject({ Bucket, Key, VersionId: 'null' })
  t.equal((await failure(s3.getObject({ Bucket, Key }))).said, '404 NoSuchKey')
})

import t from 'tap'
import { S3Error } from '../../../../common/errors/s3-error.js'
import { createLogger } from '../../../../common/log.js'
import type { State } from '../../../../src/api/state.js'
import type { Uploads } from '../../../../src/api/uploads.js'
import { openState } from '../../../../src/state/open-state.js'
import { temporaryFolder } from '../../../support/content/folders.js'
import { startInProcess } from '../../../support/server/in-process.js'
import { modes } from '../../../support/server/modes.js'

/** The outcome of the next upload that is finished cannot be kept. */
function forgetful(state: State): { readonly state: State; forget(): void } {
  let forgets = false
  const uploads = new Proxy(state.uploads, {
    get(target, name: keyof Uploads) {
      if (name === 'finish' && forgets) {
        return async () => {
          forgets = false
          throw new S3Error('ServiceUnavailable')
        }
      }
      return target[name].bind(target)
    },
  })
  return {
    state: { ...state, uploads },
    forget() {
      forgets = true
    },
  }
}

for (const mode of modes) {
  t.test(`${mode}: a condition is not held against what the upload itself has stored`, async (t) => {
    const data = temporaryFolder(t)
    const own = await openState({ data, log: createLogger({ level: 'silent' }) })
    const { state, forget } = forgetful(own)
    const { s3 } = await startInProcess(t, mode, { state })
    t.teardown(() => own.close())
    const place = { Bucket: 'bucket', Key: 'k' }
    await s3.createBucket({ Bucket: place.Bucket })

    const begin = async (Body: string) => {
      const { UploadId } = await s3.createMultipartUpload(place)
      t.match(UploadId, /^\w+$/, 'no command line takes the id for an option')
      const { ETag } = await s3.uploadPart({ ...place, UploadId, PartNumber: 1, Body })
      const list = { MultipartUpload: { Parts: [{ PartNumber: 1, ETag }] } }
      return (condition: object) => s3.completeMultipartUpload({ ...place, UploadId, ...list, ...condition })
    }
    const create = await begin('the first')
    const rival = await begin('the first')
    forget()
    await t.rejects(create({ IfNoneMatch: '*' }), { name: 'ServiceUnavailable' })
    const { ETag } = await create({ IfNoneMatch: '*' })
    t.equal((await create({ IfNoneMatch: '*' })).ETag, ETag)
    await t.rejects(rival({ IfNoneMatch: '*' }), { name: 'PreconditionFailed' }, 'other upload, though the same bytes')

    const replace = await begin('the second')
    forget()
    await t.rejects(replace({ IfMatch: ETag }), { name: 'ServiceUnavailable' })
    await replace({ IfMatch: ETag })
    const got = await s3.getObject(place)
    t.equal(await got.Body?.transformToString(), 'the second')
  })
}

t.test('a repeated call finds its version, also when that is not current, changed or gone', async (t) => {
  const own = await openState({ data: temporaryFolder(t), log: createLogger({ level: 'silent' }) })
  t.teardown(() => own.close())
  const { state, forget } = forgetful(own)
  const { s3 } = await startInProcess(t, 'full', { state })
  const place = { Bucket: 'bucket', Key: 'k' }
  await s3.createBucket({ Bucket: place.Bucket })
  await s3.putBucketVersioning({ Bucket: place.Bucket, VersioningConfiguration: { Status: 'Enabled' } })
  const ids = async () => (await s3.listObjectVersions(place)).Versions?.map(({ VersionId }) => VersionId)
  /** Completes an upload without an answer. */
  const completeInVain = async (more = {}) => {
    const { UploadId } = await s3.createMultipartUpload({ ...place, ...more })
    const { ETag } = await s3.uploadPart({ ...place, UploadId, PartNumber: 1, Body: 'of parts' })
    const MultipartUpload = { Parts: [{ PartNumber: 1, ETag }] }
    const complete = () => s3.completeMultipartUpload({ ...place, UploadId, MultipartUpload })
    forget()
    await t.rejects(complete(), { name: 'ServiceUnavailable' })
    return { complete, VersionId: (await s3.headObject(place)).VersionId as string }
  }

  const changed = await completeInVain({ Tagging: 'a=before' })
  const version = { ...place, VersionId: changed.VersionId }
  await s3.putObjectTagging({ ...version, Tagging: { TagSet: [{ Key: 'a', Value: 'after' }] } })
  await s3.putObject({ ...place, Body: 'later' })
  const before = await ids()
  t.equal((await changed.complete()).VersionId, changed.VersionId)
  t.same(await ids(), before)
  t.match((await s3.getObjectTagging(version)).TagSet, [{ Value: 'after' }])

  for (const _ of ['with an object before it', 'with nothing else']) {
    const gone = await completeInVain()
    await s3.deleteObject({ ...place, VersionId: gone.VersionId })
    const left = await ids()
    t.equal((await gone.complete()).VersionId, gone.VersionId)
    t.same(await ids(), left, 'it is not made again')
    for (const VersionId of left ?? []) await s3.deleteObject({ ...place, VersionId })
  }
})

t.test('a caller with its own account uploads also when the gateway refuses that of the server', async (t) => {
  const server = await startInProcess(t, 'full')
  const { s3, gateway } = server
  const { url, account } = gateway
  await server.restart({
    gateway: { url, account: { ...account, secretKey: 'that of yesterday' } },
    identities: [{ accessKeyId: 'test-key', secretAccessKey: 'test-secret', account }],
  })
  const place = { Bucket: 'bucket', Key: 'k' }
  await s3.createBucket({ Bucket: place.Bucket })
  const { UploadId } = await s3.createMultipartUpload(place)
  const { Uploads } = await s3.listMultipartUploads({ Bucket: place.Bucket })
  t.match(Uploads, [{ UploadId }])
  const { ETag } = await s3.uploadPart({ ...place, UploadId, PartNumber: 1, Body: 'x' })
  const MultipartUpload = { Parts: [{ PartNumber: 1, ETag }] }
  await s3.completeMultipartUpload({ ...place, UploadId, MultipartUpload })
  t.equal(await (await s3.getObject(place)).Body?.transformToString(), 'x')
})

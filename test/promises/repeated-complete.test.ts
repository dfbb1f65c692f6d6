import {
  CompleteMultipartUploadCommand,
  CreateBucketCommand,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  PutObjectCommand,
  UploadPartCommand,
} from '@aws-sdk/client-s3'
import t from 'tap'
import { Between } from '../support/gateway/between.js'
import { startInProcess } from '../support/server/in-process.js'
import { modes } from '../support/server/modes.js'
import { until } from '../support/waiting.js'

/**
 * Clients repeat CompleteMultipartUpload after 503. If the first call took effect and another write has replaced the
 * object since, the repeated call answers as the first one would have, and writes nothing.
 */

const Bucket = 'repeated'
const unavailable = { name: /ServiceUnavailable|SlowDown/ }

for (const mode of modes)
  t.test(`${mode}: a repeated Complete does not undo a later write`, async (t) => {
    const server = await startInProcess(t, mode)
    const { s3, gateway } = server
    await s3.send(new CreateBucketCommand({ Bucket }))
    const between = await Between.start(t, gateway)
    const throughBetween = { gateway: { url: between.url, account: gateway.account } }
    await server.restart(throughBetween)

    const begin = async (Key: string) => {
      const { UploadId } = await s3.send(new CreateMultipartUploadCommand({ Bucket, Key }))
      const { ETag } = await s3.send(new UploadPartCommand({ Bucket, Key, UploadId, PartNumber: 1, Body: 'upload' }))
      const MultipartUpload = { Parts: [{ PartNumber: 1, ETag }] }
      return () => s3.send(new CompleteMultipartUploadCommand({ Bucket, Key, UploadId, MultipartUpload }))
    }
    const written = (key: string) =>
      between.requests.filter(({ method, path }) => method === 'PUT' && path.endsWith(`/upload/${Bucket}/${key}`))
    /** The gateway stores the object, and every answer to the upload is lost. */
    const loseAnswer = async (Key: string, complete: () => Promise<unknown>) => {
      between.fate = ({ method, path }) => (method === 'PUT' && path.endsWith(`/${Key}`) ? 'cut-after' : 'pass')
      await t.rejects(complete(), unavailable, `${Key}: the outcome is unknown`)
      between.fate = () => 'pass'
    }
    const persist = (send: () => Promise<unknown>) =>
      until('the later write is acknowledged', () =>
        send().then(
          () => true,
          () => false,
        ),
      )
    const get = async (Key: string) => (await s3.send(new GetObjectCommand({ Bucket, Key }))).Body?.transformToString()

    for (const earlier of ['nothing', 'an object'])
      for (const restarts of [false, true]) {
        const Key = `${earlier.replace(' ', '-')}-${restarts}`
        if (earlier === 'an object') await s3.send(new PutObjectCommand({ Bucket, Key, Body: 'an older object' }))
        const complete = await begin(Key)
        await loseAnswer(Key, complete)
        await persist(() => s3.send(new PutObjectCommand({ Bucket, Key, Body: 'the later object' })))
        const before = written(Key).length
        if (restarts) await server.restart(throughBetween)
        const answers = await Promise.all([complete(), complete()])
        for (const { ETag } of answers) t.equal(ETag, '"d3dcdee8d91e1d9bb0a489d109e77386-1"', Key)
        t.equal(written(Key).length, before, 'nothing was sent to the gateway')
        t.equal(await get(Key), 'the later object')
      }

    const removed = 'removed'
    await s3.send(new PutObjectCommand({ Bucket, Key: removed, Body: 'an older object' }))
    const complete = await begin(removed)
    await loseAnswer(removed, complete)
    await persist(() => s3.send(new DeleteObjectCommand({ Bucket, Key: removed })))
    await complete()
    await t.rejects(get(removed), { name: 'NoSuchKey' }, 'a removal is not undone either')

    const refused = await begin('refused')
    between.fate = ({ method, path }) =>
      method === 'PUT' && path.endsWith('/refused') ? { status: 403, body: '' } : 'pass'
    await t.rejects(refused(), { name: 'AccessDenied' })
    between.fate = () => 'pass'
    await s3.send(new PutObjectCommand({ Bucket, Key: 'refused', Body: 'the later object' }))
    await refused()
    t.equal(await get('refused'), 'upload', 'what was refused is stored when it is repeated')
  })

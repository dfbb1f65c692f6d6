import { type Context, defineCall, PageOf, type S3Request } from 'dealgate'
import { z } from 'zod'
import { type UploadDocument, uploadDocument, uploadOf } from '../documents/upload.js'
import { acting, actorOf } from '../login/acting.js'
import type { PayParts } from '../parts.js'
import type { MadeUpload } from '../records/made-uploads.js'
import {
  BEARER_PURPOSE,
  UPLOAD,
  type UploadInput,
  uploadAliases,
  uploadRequest,
  uploadResult,
} from '../upload/input.js'
import { requireObject } from '../upload/object.js'
import { findLive } from './live-uploads.js'
import { SOURCE } from './sources.js'

export function uploadObjectToIpfs(parts: PayParts) {
  return defineCall({
    name: 'UploadObjectToIpfs',
    source: SOURCE,
    summary: 'Uploads an object to the content-addressed network, for a number of days that its wallet then pays.',
    access: 'owner',
    on: { method: 'POST', resource: 'object', subresource: 'x-pay' },
    body: uploadRequest,
    aliases: uploadAliases,
    result: uploadResult,
    root: 'PayUploadResult',
    job: UPLOAD,
    spends: true,
    async order({ request, body }, context) {
      const { bucket, key } = request
      const { stamp } = await requireObject(context, { bucket, key })
      const actor = actorOf(context, request)
      const naming = { named: body.WalletAddress, needsAddress: true }
      const wallet = await acting(parts, actor, naming, async ({ address }) => address)
      const input: UploadInput = {
        bucket,
        key,
        stamp,
        days: body.DurationDays,
        fileType: body.FileType ?? '0',
        ...(wallet !== undefined && { wallet }),
        ...(actor.bearer !== undefined && { bearer: await parts.host.sealer.seal(actor.bearer, BEARER_PURPOSE) }),
      }
      return { resource: `/${bucket}/${key}`, input }
    },
  })
}

const objectUpload = z.object({
  JobId: z.string().describe('Of the job that uploaded it.'),
  SourceFileUploadId: z.number().int(),
  PayloadCid: z.string().describe('CID of the content.'),
  IpfsUrl: z.string(),
  WCid: z.string(),
  DurationDays: z.number().int(),
  Current: z.boolean().describe('Whether the object still is the one that was uploaded.'),
  Status: z.string().describe('Of the upload now; Unseen if the service does not show it to the caller.'),
  Upload: uploadDocument.optional().describe('As the service lists it.'),
})

/** Most uploads on a page. */
const PAGE = 100

export function listObjectUploads(parts: PayParts) {
  return defineCall({
    name: 'ListObjectUploads',
    source: SOURCE,
    summary: 'Lists the uploads of an object that were made through this server, newest first, each as it is now.',
    access: 'owner',
    on: { method: 'GET', resource: 'object', subresource: 'x-pay' },
    result: z.object({
      Bucket: z.string(),
      Key: z.string(),
      Uploads: z.array(objectUpload).meta({ element: 'ObjectUpload' }),
    }),
    pages: 'Uploads',
    expands: ({ JobId, Upload }, { Bucket, Key }) => {
      const [deal] = (Upload as UploadDocument | undefined)?.OfflineDeals ?? []
      return { bucket: String(Bucket), key: String(Key), dealCid: deal?.DealCid ?? '', jobId: String(JobId) }
    },
    async answer({ request, page }, context) {
      const { bucket, key } = request
      context.checks.requireKey(bucket, key, 'read')
      const [object, birth] = await Promise.all([context.store.head(bucket, key), context.births.now(bucket)])
      const made = await parts.made.ofObject(bucket, key, birth)
      const start = page.from !== undefined && /^\d{1,9}$/.test(page.from) ? Number(page.from) : 0
      const end = start + Math.min(page.limit, PAGE)
      const wanted = made.slice(start, end)
      const live = await liveOf(parts, context, request, wanted)
      const items = wanted.map((one) => shown(one, object.stamp, live.get(one.uploadId)))
      return { Bucket: bucket, Key: key, Uploads: new PageOf(items, end < made.length ? String(end) : undefined) }
    },
  })
}

async function liveOf(
  parts: PayParts,
  context: Context,
  request: Pick<S3Request, 'headers' | 'signal'>,
  made: readonly MadeUpload[],
): Promise<ReadonlyMap<number, UploadDocument>> {
  const found = await findLive(parts, context, request, made)
  return new Map([...found].map(([id, upload]) => [id, uploadOf(upload)]))
}

function shown(made: MadeUpload, stamp: string, live: UploadDocument | undefined): z.output<typeof objectUpload> {
  return {
    JobId: made.jobId,
    SourceFileUploadId: made.uploadId,
    PayloadCid: made.cid,
    IpfsUrl: made.url,
    WCid: made.wCid,
    DurationDays: made.days,
    Current: made.stamp === stamp,
    Status: live?.Status ?? 'Unseen',
    ...(live && { Upload: live }),
  }
}

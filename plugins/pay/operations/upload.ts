import { actorOf, warningHeaders } from 'dealgate/paid'
import {
  type Context,
  defineCall,
  type FileForm,
  isForm,
  openForm,
  PageOf,
  S3Error,
  type S3Request,
} from 'dealgate/plugin'
import { z } from 'zod'
import type { PayDeps } from '../deps.js'
import { type ShownUpload, upload } from '../documents.js'
import { address } from '../service.js'
import { acting, TOKEN } from '../sign-in.js'
import {
  type FileContent,
  type FileInput,
  fileQuery,
  type HeldFile,
  passFile,
  UPLOAD_FILE,
} from '../upload/file-job.js'
import { MAX_DAYS, publicWarningOf, requireObject, UPLOAD, uploadAliases, uploadRequest } from '../upload/job.js'
import type { MadeUpload } from '../upload/made-uploads.js'
import { fileNameOf, madeUpload, type UploadInput, uploadResult } from '../upload/reconcile.js'
import { findLive } from './live-uploads.js'
import { SOURCE } from './send.js'

/** A file that is not an object is passed on as it comes. */
const PLAIN = warningHeaders(
  'The file is not encrypted by this server: everyone who has its CID can read it, for as long as a provider keeps it.',
)

/** The facts of a form that is still to be read. */
const UNREAD = { name: '', days: 0, fileType: '0' } as const

export function uploadToIpfs(deps: PayDeps) {
  return defineCall({
    name: 'UploadToIpfs',
    source: SOURCE,
    summary:
      'Uploads the body of the request, or the file of a form, to the content-addressed network, without an object.',
    access: 'signed',
    on: { method: 'POST', resource: 'service', path: '/-/pay/v1/uploads' },
    query: fileQuery,
    result: madeUpload,
    root: 'PayUploadResult',
    job: UPLOAD_FILE,
    spends: true,
    async order({ request, query }, context) {
      const { length: size } = request.body
      if (size === undefined) throw new S3Error('MissingContentLength')
      const actor = actorOf(context, request, TOKEN)
      const sealed = await deps.jobTokens.seal(actor)
      const resource = '/-/pay/v1/uploads'
      // What a form says is read with its file.
      if (isForm(request)) return { resource, input: { ...UNREAD, size, ...sealed }, headers: PLAIN }
      const { wallet: named, ...terms } = termsOfQuery(query)
      const wallet = await acting(deps, actor, { named, needsAddress: true }, async ({ address }) => address)
      const input = { ...terms, size, ...(wallet !== undefined && { wallet }), ...sealed }
      return { resource, input, headers: PLAIN }
    },
    pass: ({ request, query }, { id, input }, context) => {
      const held = { jobId: id, input: input as FileInput }
      if (isForm(request)) return passForm(deps, request, { ...held, query }, context)
      const content: FileContent = {
        size: held.input.size,
        send: async (sink) => void (await request.body.stream(sink)),
      }
      return passFile(deps, { content, signal: request.signal }, held, context)
    },
  })
}

export function uploadObjectToIpfs(deps: PayDeps) {
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
      const { revision } = await requireObject(context, { bucket, key })
      const headers = warningHeaders(await publicWarningOf(context, { bucket, key }))
      const actor = actorOf(context, request, TOKEN)
      const naming = { named: body.WalletAddress, needsAddress: true }
      const wallet = await acting(deps, actor, naming, async ({ address }) => address)
      const input: UploadInput = {
        bucket,
        key,
        stamp: revision,
        days: body.DurationDays,
        fileType: body.FileType ?? '0',
        ...(wallet !== undefined && { wallet }),
        ...(await deps.jobTokens.seal(actor)),
      }
      return { resource: `/${bucket}/${key}`, input, headers }
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
  Upload: upload.shown.optional().describe('As the service lists it.'),
})

const PAGE = 100

export function listObjectUploads(deps: PayDeps) {
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
      const [deal] = (Upload as ShownUpload | undefined)?.OfflineDeals ?? []
      return { bucket: String(Bucket), key: String(Key), dealCid: deal?.DealCid ?? '', jobId: String(JobId) }
    },
    async answer({ request, page }, context) {
      const { bucket, key } = request
      context.checks.requireKey(bucket, key, 'read')
      const [object, creationTime] = await Promise.all([
        context.store.head(bucket, key),
        context.creationTimes.now(bucket),
      ])
      const made = await deps.made.ofObject(bucket, key, creationTime)
      const start = page.from !== undefined && /^\d{1,9}$/.test(page.from) ? Number(page.from) : 0
      const end = start + Math.min(page.limit, PAGE)
      const wanted = made.slice(start, end)
      const live = await findLive(deps, context, request, wanted)
      const items = wanted.map((one) => shown(one, object.revision, live.get(one.uploadId)))
      return { Bucket: bucket, Key: key, Uploads: new PageOf(items, end < made.length ? String(end) : undefined) }
    },
  })
}

function shown(made: MadeUpload, revision: string, live: ShownUpload | undefined): z.output<typeof objectUpload> {
  return {
    JobId: made.jobId,
    SourceFileUploadId: made.uploadId,
    PayloadCid: made.cid,
    IpfsUrl: made.url,
    WCid: made.wCid,
    DurationDays: made.days,
    Current: made.revision === revision,
    Status: live?.Status ?? 'Unseen',
    ...(live && { Upload: live }),
  }
}

interface HeldForm extends HeldFile {
  readonly query: z.output<typeof fileQuery>
}

/** Passes the file of a form on to the service, as `passFile` does, with the terms that the form states. */
async function passForm(
  deps: PayDeps,
  request: Pick<S3Request, 'body' | 'headers' | 'signal'>,
  { jobId, input, query }: HeldForm,
  context: Context,
): Promise<FileInput> {
  const form = await openForm(request)
  try {
    const { wallet: named, ...terms } = termsOfForm(query, form)
    const actor = await deps.jobTokens.actorOf({ input, context }, 'WalletNotLinked')
    const wallet = await acting(deps, actor, { named, needsAddress: true }, async ({ address }) => address)
    const content = {
      size: undefined,
      async send(sink: (chunk: Buffer) => Promise<void>) {
        for await (const chunk of form.content()) await sink(chunk)
      },
    }
    const read: FileInput = { ...input, ...terms, ...(wallet !== undefined && { wallet }) }
    return await passFile(deps, { content, signal: request.signal }, { jobId, input: read }, context)
  } finally {
    form.close()
  }
}

type Query = z.output<typeof fileQuery>

/** What the query says of a file, and the form, if it comes in one. */
interface FileTerms extends Pick<FileInput, 'name' | 'days' | 'fileType'> {
  /** Address of the wallet; undefined: that of the plugin, or of the log-in. */
  readonly wallet: string | undefined
}

/** Throws S3Error InvalidArgument. */
function termsOfQuery(query: Query): FileTerms {
  const { 'duration-days': days, 'file-name': name } = query
  if (days === undefined) throw invalid('duration-days', 'is required')
  if (name === undefined) throw invalid('file-name', 'is required')
  return { name: fileNameOf(name), days, fileType: query['file-type'] ?? '0', wallet: query['wallet-address'] }
}

/**
 * The query counts more than the form, whose texts have the names of the interface. Throws S3Error InvalidArgument.
 */
function termsOfForm(query: Query, form: Pick<FileForm, 'field' | 'fileName'>): FileTerms {
  const text = (name: string): string | undefined => form.field(name)?.trim() || undefined
  const type = query['file-type'] ?? text('file_type') ?? '0'
  if (type !== '0' && type !== '1') throw invalid('file_type', 'must be 0 or 1')
  const named = query['wallet-address'] ?? text('wallet_address')
  const wallet = named === undefined ? undefined : address.safeParse(named)
  if (wallet?.success === false) throw invalid('wallet_address', 'must be an address')
  return {
    // Browsers write a quotation mark so (https://html.spec.whatwg.org/multipage/form-control-infrastructure.html#multipart-form-data).
    name: fileNameOf(query['file-name'] ?? form.fileName.replaceAll('%22', '"')),
    days: query['duration-days'] ?? daysOf(text('duration')),
    fileType: type,
    wallet: wallet?.data,
  }
}

function daysOf(text: string | undefined): number {
  if (text === undefined) throw invalid('duration', 'is required')
  const days = /^\d{1,6}$/.test(text) ? Number(text) : 0
  if (days < 1 || days > MAX_DAYS) throw invalid('duration', `must be a number of days from 1 to ${MAX_DAYS}`)
  return days
}

function invalid(name: string, problem: string): S3Error {
  return new S3Error('InvalidArgument', { message: `${name} ${problem}.`, fields: { ArgumentName: name } })
}

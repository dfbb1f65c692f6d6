import { randomUUID } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { CID } from 'multiformats/cid'
import { z } from 'zod'
import type { Document, documents } from '../../../common/service-documents.js'
import { receive as receiveBody, type ServiceResponse } from '../../http/body.js'
import { ReceiveError } from '../../http/errors.js'

import { clientOf } from '../../http/server.js'
import { KuboError } from '../../network/kubo/kubo-errors.js'
import { type Network, NetworkError } from '../../network/network.js'
import { MultipartForm } from '../../rest/form.js'
import type { PackStaged, StagedContent } from '../contents/content-store.js'
import type { ContentKind } from '../contents/content-table.js'
import type { PaymentContext } from '../context.js'
import { PaymentError } from '../errors.js'
import { formed, parsed, passing, required, text, walletAddress } from '../fields.js'
import { ipfsUrl } from '../ipfs/serve.js'
import { leastPayment } from '../prices.js'
import { type PaymentCall, walletOf } from '../route.js'
import { isFree } from './free-room.js'
import { paced } from './pace.js'
import type { Share } from './shares.js'
import { shownStatus, type UploadRow, type UploadTable } from './upload-table.js'

const MAX_NAME = 255
const RETRY_SECONDS = 30
const CAR_TYPE = 'application/vnd.ipld.car'

/** Receives the form of an upload. Rejects with HttpError. */
export function receiveUpload({ context, exchange, caller }: PaymentCall): Promise<UploadAnswer> {
  const { slots, contents, retention, shares } = context
  const type = exchange.request.headers['content-type'] ?? ''
  if (!/^multipart\/form-data\s*;/i.test(type)) throw new PaymentError('structure', 'send a multipart form')
  const wallet = caller?.address
  return slots.run(wallet, clientOf(exchange.request), () =>
    shares.run(wallet, (share) =>
      contents.receive(
        (pack) => receive({ context, exchange, caller }, type, share, pack),
        () => retention.giveUp(),
      ),
    ),
  )
}

type Receiving = Pick<PaymentCall, 'context' | 'exchange' | 'caller'>

async function receive(
  { context, exchange, caller }: Receiving,
  type: string,
  share: Share,
  pack: PackStaged,
): Promise<UploadAnswer> {
  const { limits } = context
  const { request, response, body } = exchange
  const gone = signalOf(response)
  const form = uploadForm(type, limits.maxFileBytes, (content, type) =>
    packed((content, kind) => pack(content, kind, gone), counted(content, share), type),
  )
  body.open()
  try {
    await receiveBody(request, undefined, paced(form, limits.uploadPace), limits.bodyIdleMs)
    const received = await form.finish()
    const [file] = received.files
    if (file === undefined) throw new PaymentError('missing', 'file is required')
    // The first of two fields with one name counts.
    const fields = parsed(z.object(uploadFields), Object.fromEntries([...received.fields].reverse()))
    const wallet = walletOf(caller, fields.wallet_address)
    const terms = { duration: fields.duration, fileType: fields.file_type }
    const name = fileName(fields.file_name, file.name)
    const order = { wallet, ...terms, name, staged: file.taken, key: idempotencyKeyOf(request.headers) }
    const before = await uploadedBefore(context.db.read.uploads, order)
    if (before) return answerOf(context, before)
    await share.claim(wallet, file.taken.size)
    return await store(context, order)
  } catch (error) {
    await form.abort(error)
    throw gone.aborted ? new ReceiveError('IncompleteBody') : error
  }
}

/** Most bytes of a text part, and most parts. */
const MAX_FIELD_BYTES = 4095
const MAX_PARTS = 31
/** Most bytes of a form besides those of its file. A part that is skipped would else hold its place for ever. */
const MAX_OTHER_BYTES = 1024 * 1024

/**
 * The form of an upload: its part `file` is passed on in chunks. A second one is refused; files of other names are
 * skipped.
 * @param take gets the chunks of the file, and its media type
 */
export function uploadForm<T>(
  contentType: string,
  maxFileBytes: number,
  take: (content: AsyncIterable<Uint8Array>, type: string) => Promise<T>,
): MultipartForm<T> {
  const bounds = {
    maxParts: MAX_PARTS,
    maxFieldBytes: MAX_FIELD_BYTES,
    maxFileBytes,
    maxOtherBytes: MAX_OTHER_BYTES,
  }
  let files = 0
  return new MultipartForm(contentType, bounds, ({ field, content, type }) => {
    if (field !== 'file') return undefined
    // One of the two would be lost, and the client would pay for the other.
    if (files++ > 0) throw new PaymentError('value', 'a form has one part `file`: upload each file by itself')
    return take(content, type)
  })
}

/** Aborts when the client leaves before its answer: the blocks of a CAR take seconds after its last byte. */
function signalOf(response: ServiceResponse): AbortSignal {
  const gone = new AbortController()
  response.once('close', () => {
    if (!response.writableFinished) gone.abort()
  })
  return gone.signal
}

/** A part of the type of a CAR is a directory, as `ipfs dag export` writes it. */
async function packed(
  pack: (content: AsyncIterable<Uint8Array>, kind: ContentKind) => Promise<StagedContent>,
  content: AsyncIterable<Uint8Array>,
  type: string,
): Promise<StagedContent> {
  if (type !== CAR_TYPE) return pack(content, 'file')
  try {
    return await pack(content, 'directory')
  } catch (error) {
    throw error instanceof NetworkError ? new PaymentError('value', error.message) : error
  }
}

async function* counted(content: AsyncIterable<Uint8Array>, share: Share): AsyncIterable<Uint8Array> {
  for await (const chunk of content) {
    await share.add(chunk.length)
    yield chunk
  }
}

type UploadAnswer = Document<typeof documents.uploadAnswer> & { readonly status?: string }

interface Order {
  readonly duration: number
  readonly fileType: 0 | 1
  readonly wallet: string
  readonly name: string
  readonly staged: StagedContent
  /** Idempotency key of the request. */
  readonly key: string | undefined
}

/** https://datatracker.ietf.org/doc/draft-ietf-httpapi-idempotency-key-header/ */
function idempotencyKeyOf(headers: IncomingHttpHeaders): string | undefined {
  const key = headers['idempotency-key']
  if (key !== undefined && !/^[\x21-\x7e]{1,128}$/.test(String(key)))
    throw new PaymentError('value', 'Idempotency-Key has 1 to 128 visible characters of ASCII')
  return key === undefined ? undefined : String(key)
}

/** The upload that a request with this key has made. Throws PaymentError `conflict` for a different one. */
async function uploadedBefore(
  uploads: UploadTable,
  { wallet, key, name, staged, ...terms }: Order,
): Promise<UploadRow | undefined> {
  const before = key === undefined ? undefined : await uploads.findByKey(wallet, key)
  if (!before) return undefined
  const same =
    before.cid === staged.cid &&
    before.fileName === name &&
    before.duration === terms.duration &&
    before.fileType === terms.fileType
  if (!same) throw new PaymentError('conflict', `this Idempotency-Key is that of the source file upload:${before.id}`)
  return before
}

async function answerOf(
  context: PaymentContext,
  { id, cid, fileSize, wCid, status }: Pick<UploadRow, 'id' | 'cid' | 'fileSize' | 'wCid' | 'status'>,
): Promise<UploadAnswer> {
  return {
    source_file_upload_id: id,
    payload_cid: cid,
    ipfs_url: await ipfsUrl(context, cid),
    file_size: fileSize,
    w_cid: wCid,
    ...(context.mode === 'signedIn' && { status: status === 'Free' ? status : shownStatus(status) }),
  }
}

async function store(context: PaymentContext, order: Order): Promise<UploadAnswer> {
  const { wallet, duration, fileType, name, staged, key } = order
  const { contents, seconds, network, mode, shares } = context
  const { cid, size } = staged
  if (context.denylist?.has(CID.parse(cid))) {
    throw new PaymentError('forbidden', 'the operator of this service does not take this content')
  }
  const price = await priceOf(network, size, duration)
  const wCid = `${randomUUID()}${cid}`
  const keep = () =>
    contents.keep(staged, async ({ id: content }, { uploads }) => {
      const before = await uploadedBefore(uploads, order)
      if (before) return before
      await shares.requireRoom(uploads, wallet, size)
      const times = { created: seconds(), createdEpoch: network.epoch() }
      const free = mode === 'signedIn' && (await isFree(context, uploads, { wallet, fileType, size })) ? 1 : 0
      const id = await uploads.add({
        wCid,
        wallet,
        content,
        fileName: name,
        fileSize: size,
        duration,
        fileType,
        price,
        ...times,
        isFree: free,
        idempotencyKey: key ?? null,
      })
      return { id, cid, fileSize: size, wCid, status: free ? 'Free' : 'Pending' } as const
    })
  return answerOf(context, await onNode(context, staged, keep))
}

async function priceOf(network: Network, size: number, days: number): Promise<number> {
  try {
    return Number(await leastPayment(network, size, days))
  } catch (error) {
    throw error instanceof NetworkError ? new PaymentError('busy', error.message) : error
  }
}

/** Keeps a content once the Kubo node has it, too, if there is one. */
async function onNode<T>({ kubo }: PaymentContext, staged: StagedContent, keep: () => Promise<T>): Promise<T> {
  if (kubo === undefined) return keep()
  try {
    return await kubo.copies.add(staged, keep)
  } catch (error) {
    if (!(error instanceof NetworkError || error instanceof KuboError)) throw error
    throw new PaymentError('busy', `the Kubo node does not take the file: ${error.message}`, [
      'Retry-After',
      RETRY_SECONDS,
    ])
  }
}

/** The name without folders, as the parser gives it. Throws PaymentError `value`. */
function fileName(given: string | undefined, name: string): string {
  const chosen = name === '' ? (parsed(text('file_name'), given) ?? 'file') : name
  if (chosen.length > MAX_NAME || /\p{Cc}/u.test(chosen) || !chosen.isWellFormed()) {
    throw new PaymentError('value', `a file name has at most ${MAX_NAME} characters on one line`)
  }
  return chosen
}

/** Days for which storage providers of the network accept deals. */
const MIN_DAYS = 180
const MAX_DAYS = 540

const days = formed(required('duration'), 'type', 'duration must be a whole number of days', (text) =>
  /^-?\d{1,9}$/.test(text) ? Number(text) : undefined,
)

/** The texts of an upload. */
export const uploadFields = {
  wallet_address: walletAddress(),
  duration: passing(
    days,
    'value',
    `duration must be from ${MIN_DAYS} to ${MAX_DAYS} days`,
    (days) => days >= MIN_DAYS && days <= MAX_DAYS,
  ).describe('Days.'),
  file_type: formed(
    text('file_type').transform((text) => text ?? '0'),
    'value',
    'file_type must be 0 or 1',
    (text) => (text === '0' ? 0 : text === '1' ? 1 : undefined),
  ).describe('0, which is the default, or 1.'),
  file_name: z.string().optional().describe('Of a part without a name.'),
}

import { randomUUID } from 'node:crypto'
import { CID } from 'multiformats/cid'
import type { Document, documents } from '../../../common/service-documents.js'
import { receive, type ServiceResponse } from '../../http/body.js'
import { ReceiveError } from '../../http/errors.js'

import { clientOf } from '../../http/server.js'
import { KuboError } from '../../network/kubo/kubo-errors.js'
import { type Network, NetworkError } from '../../network/network.js'
import { MultipartForm } from '../../rest/form.js'
import { paced } from '../../rest/pace.js'
import type { PackStaged, StagedContent } from '../contents/content-store.js'
import type { ContentKind } from '../contents/content-table.js'
import type { PaymentContext } from '../context.js'
import { PaymentError } from '../errors.js'
import { Fields, type PaymentExchange, walletAddressOf } from '../exchange.js'
import { ipfsUrl } from '../ipfs/serve.js'
import { leastPayment } from '../prices.js'
import type { Share } from './shares.js'
import { isFree } from './show-uploads.js'
import { shownStatus, type UploadRow, type UploadTable } from './upload-table.js'

const MAX_NAME = 255
const RETRY_SECONDS = 30
const CAR_TYPE = 'application/vnd.ipld.car'

/** POST /storage/ipfs/upload: stores a file by its content; the upload is then to be paid. */
export async function upload(exchange: PaymentExchange): Promise<object> {
  const { slots, contents, retention, shares } = exchange.context
  const type = exchange.request.headers['content-type'] ?? ''
  if (!/^multipart\/form-data\s*;/i.test(type)) throw new PaymentError('structure', 'send a multipart form')
  const wallet = exchange.caller?.address
  return slots.run(wallet, clientOf(exchange.request), () =>
    shares.run(wallet, (share) =>
      contents.receive(
        (pack) => receiveUpload(exchange, type, share, pack),
        () => retention.giveUp(),
      ),
    ),
  )
}

async function receiveUpload(exchange: PaymentExchange, type: string, share: Share, pack: PackStaged): Promise<object> {
  const { limits } = exchange.context
  const gone = signalOf(exchange.response)
  const form = uploadForm(type, limits.maxFileBytes, (content, type) =>
    packed((content, kind) => pack(content, kind, gone), counted(content, share), type),
  )
  exchange.body.open()
  try {
    await receive(exchange.request, undefined, paced(form, limits.uploadPace), limits.bodyIdleMs)
    const received = await form.finish()
    const fields = new Fields(received.fields)
    const [file] = received.files
    if (file === undefined) throw new PaymentError('missing', 'file is required')
    const wallet = walletAddressOf(exchange, fields.get('wallet_address'))
    const terms = readTerms(fields)
    const name = fileName(fields, file.name)
    const order = { wallet, ...terms, name, staged: file.taken, key: idempotencyKeyOf(exchange) }
    const before = await uploadedBefore(exchange.context.db.read.uploads, order)
    if (before) return answerOf(exchange.context, before)
    await share.claim(wallet, file.taken.size)
    return await store(exchange, order)
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

interface Order extends UploadTerms {
  readonly wallet: string
  readonly name: string
  readonly staged: StagedContent
  /** Idempotency key of the request. */
  readonly key: string | undefined
}

/** https://datatracker.ietf.org/doc/draft-ietf-httpapi-idempotency-key-header/ */
function idempotencyKeyOf({ request }: PaymentExchange): string | undefined {
  const key = request.headers['idempotency-key']
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
): Promise<Document<typeof documents.uploadAnswer>> {
  return {
    source_file_upload_id: id,
    payload_cid: cid,
    ipfs_url: await ipfsUrl(context, cid),
    file_size: fileSize,
    w_cid: wCid,
    ...(context.mode === 'signedIn' && { status: status === 'Free' ? status : shownStatus(status) }),
  }
}

async function store(exchange: PaymentExchange, order: Order): Promise<object> {
  const { context } = exchange
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
function fileName(fields: Fields, name: string): string {
  const text = name === '' ? (fields.get('file_name') ?? 'file') : name
  if (text.length > MAX_NAME || /\p{Cc}/u.test(text) || !text.isWellFormed()) {
    throw new PaymentError('value', `a file name has at most ${MAX_NAME} characters on one line`)
  }
  return text
}

/** Days for which storage providers of the network accept deals. */
const MIN_DAYS = 180
const MAX_DAYS = 540

interface UploadTerms {
  readonly duration: number
  readonly fileType: 0 | 1
}

/** Reads the texts of an upload. Throws PaymentError. */
function readTerms(fields: Fields): UploadTerms {
  const text = fields.required('duration')
  if (!/^-?\d{1,9}$/.test(text)) throw new PaymentError('type', 'duration must be a whole number of days')
  const duration = Number(text)
  if (duration < MIN_DAYS || duration > MAX_DAYS) {
    throw new PaymentError('value', `duration must be from ${MIN_DAYS} to ${MAX_DAYS} days`)
  }
  const type = fields.get('file_type') ?? '0'
  if (type !== '0' && type !== '1') throw new PaymentError('value', 'file_type must be 0 or 1')
  return { duration, fileType: type === '1' ? 1 : 0 }
}

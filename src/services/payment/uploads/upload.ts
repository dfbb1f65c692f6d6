import { randomUUID } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { CID } from 'multiformats/cid'
import { Quota } from '../../../common/quota.js'
import { ReceiveError, receive } from '../../http/receive.js'
import { type ClientAddress, clientOf } from '../../http/server.js'
import { KuboError } from '../../network/kubo/kubo-errors.js'
import { type Network, NetworkError } from '../../network/network.js'
import type { PackStaged, StagedContent } from '../contents/content-store.js'
import type { ContentKind } from '../contents/content-table.js'
import type { PaymentContext } from '../context.js'
import { PaymentError } from '../errors.js'
import { type Exchange, type Fields, paced } from '../http.js'
import { ipfsUrl } from '../ipfs/serve.js'
import type { PaymentLimits } from '../limits.js'
import { walletAddressOf } from '../sign-in.js'
import { leastPayment } from '../system.js'
import { isFree, type Share } from './shares.js'
import { UploadForm } from './upload-form.js'

const MAX_NAME = 255
const RETRY_SECONDS = 30
const CAR_TYPE = 'application/vnd.ipld.car'

/** POST /storage/ipfs/upload: stores a file by its content; the upload is then to be paid. */
export async function upload(exchange: Exchange): Promise<object> {
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

async function receiveUpload(exchange: Exchange, type: string, share: Share, pack: PackStaged): Promise<object> {
  const { limits } = exchange.context
  const gone = signalOf(exchange.response)
  const form = new UploadForm(type, limits.maxFileBytes, (content, type) =>
    packed((content, kind) => pack(content, kind, gone), counted(content, share), type),
  )
  exchange.body.open()
  try {
    await receive(exchange.request, undefined, paced(form, limits.uploadPace), limits.bodyIdleMs)
    const { fields, file } = await form.finish()
    if (file === undefined) throw new PaymentError('missing', 'file is required')
    const wallet = walletAddressOf(exchange, fields.get('wallet_address'))
    const terms = readTerms(fields)
    const name = fileName(fields, file.name)
    share.claim(wallet, file.taken.size)
    return await store(exchange, wallet, terms, name, file.taken)
  } catch (error) {
    await form.abort(error)
    throw gone.aborted ? new ReceiveError('IncompleteBody') : error
  }
}

/** Aborts when the client leaves before its answer: the blocks of a CAR take seconds after its last byte. */
function signalOf(response: ServerResponse): AbortSignal {
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
    share.add(chunk.length)
    yield chunk
  }
}

/** Stores an upload for which there is room. */
async function store(
  { context }: Exchange,
  wallet: string,
  terms: UploadTerms,
  name: string,
  staged: StagedContent,
): Promise<object> {
  const { uploads, contents, seconds, network, variant } = context
  const { cid, size } = staged
  if (context.denylist?.has(CID.parse(cid))) {
    throw new PaymentError('forbidden', 'the operator of this service does not take this content')
  }
  const price = await priceOf(network, size, terms.duration)
  const wCid = `${randomUUID()}${cid}`
  const keep = () =>
    contents.keep(staged, ({ id: content }) => {
      const times = { created: seconds(), createdEpoch: network.epoch() }
      const free = variant === 'a' && isFree(context, wallet, terms.fileType, size)
      const id = uploads.add({
        wCid,
        wallet,
        content,
        fileName: name,
        fileSize: size,
        ...terms,
        price,
        ...times,
        isFree: free ? 1 : 0,
      })
      return { id, free }
    })
  const { id, free } = await onNode(context, staged, keep)
  return {
    source_file_upload_id: id,
    payload_cid: cid,
    ipfs_url: await ipfsUrl(context, cid),
    file_size: size,
    w_cid: wCid,
    ...(variant === 'a' && { status: free ? 'Free' : 'Pending' }),
  }
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
const LEAST_DAYS = 180
const MOST_DAYS = 540

/** How an upload is to be stored. */
interface UploadTerms {
  /** Days. */
  readonly duration: number
  readonly fileType: 0 | 1
}

/** Reads the texts of an upload. Throws PaymentError. */
function readTerms(fields: Fields): UploadTerms {
  const text = fields.required('duration')
  if (!/^-?\d{1,9}$/.test(text)) throw new PaymentError('type', 'duration must be a whole number of days')
  const duration = Number(text)
  if (duration < LEAST_DAYS || duration > MOST_DAYS) {
    throw new PaymentError('value', `duration must be from ${LEAST_DAYS} to ${MOST_DAYS} days`)
  }
  const type = fields.get('file_type') ?? '0'
  if (type !== '0' && type !== '1') throw new PaymentError('value', 'file_type must be 0 or 1')
  return { duration, fileType: type === '1' ? 1 : 0 }
}

const BUSY_RETRY_SECONDS = 10

/** Bounds the uploads that arrive at the same time: in all, of one wallet, and from one address. */
export class Slots {
  readonly #wallets: Quota
  readonly #addresses: Quota
  #unnamed = 0

  constructor({
    uploadsAtOnce: total,
    uploadsPerWallet,
    uploadsPerAddress,
  }: Pick<PaymentLimits, 'uploadsAtOnce' | 'uploadsPerWallet' | 'uploadsPerAddress'>) {
    this.#wallets = new Quota({ total, perClient: uploadsPerWallet })
    this.#addresses = new Quota({ total, perClient: uploadsPerAddress })
  }

  /**
   * Runs `job` in a slot. Rejects with PaymentError `busy` when none is free.
   * @param wallet undefined while the request has not named it
   * @param client one on this machine may be a server for many, and is not bounded by its address
   */
  async run<T>(wallet: string | undefined, client: ClientAddress, job: () => Promise<T>): Promise<T> {
    const address = client.local ? undefined : client.network
    const free = [this.#take(this.#wallets, wallet), this.#take(this.#addresses, address)]
    try {
      if (free.includes(undefined)) {
        throw new PaymentError('busy', 'too many uploads arrive', ['Retry-After', BUSY_RETRY_SECONDS])
      }
      return await job()
    } finally {
      for (const give of free) give?.()
    }
  }

  /** Takes a place in the name of a client, or of none: then only the total counts. Undefined when none is free. */
  #take(quota: Quota, client: string | undefined): (() => void) | undefined {
    const name = client === undefined ? `unnamed:${this.#unnamed++}` : `named:${client}`
    return quota.take(name, 1) ? () => quota.give(name, 1) : undefined
  }
}

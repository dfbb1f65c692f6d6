import type { Document, documents } from '../../../common/service-documents.js'
import { rfc3339 } from '../../clock.js'
import type { DealTerms } from '../../network/network.js'
import { providerRecord } from '../../network/provider-record.js'
import type { GatewayContext } from '../context.js'
import type { DealAsk } from '../deals/deals.js'
import { evict, verify } from '../deals/evict.js'
import { GatewayError } from '../errors.js'
import { decode } from '../exchange.js'
import { mustOwnBucket } from '../store/key-rules.js'
import { mustFindVersion } from '../store/version-reads.js'
import {
  asking,
  type DealEndpoint,
  dealEndpoint,
  noRecord,
  type Outcome,
  recordOf,
  type SignedExchange,
  TextMembers,
} from './deal-envelope.js'
import { parsePlace } from './download.js'
import { WHOLE_BUCKET } from './retrieve.js'
import { readGeneration } from './version-headers.js'

const TOKEN = /^[\x20-\x7e]{1,128}$/

/**
 * Reads the terms of a deal from the body of a request. Undefined when an answer has been sent. Throws GatewayError,
 * whose message says what to send.
 */
type TermsReader = (exchange: SignedExchange) => Promise<DealTerms | undefined>

/** Makes a deal of one object; with `of-generation`, of the version of that generation. */
export const objectDeal = (terms: TermsReader): DealEndpoint => ({
  nothing: () => noRecord,
  async run(exchange, rest) {
    const { context, account } = exchange
    const { bucket: bucketName, key } = parsePlace(context, rest)
    const token = readToken(exchange)
    const generation = readGeneration(exchange)
    if (!(await isRepeated(exchange, token))) {
      const { id } = await mustOwnBucket(context, account, bucketName)
      await mustFindVersion(context.db.read, id, key, generation)
    }
    return make(exchange, terms, { bucketName, key, generation, token })
  },
})

/** Makes one deal of all objects in the bucket. */
export const bucketDeal = (terms: TermsReader): DealEndpoint => ({
  nothing: () => noRecord,
  async run(exchange, rest) {
    const bucketName = decode(rest).toString()
    const token = readToken(exchange)
    if (!(await isRepeated(exchange, token))) await mustOwnBucket(exchange.context, exchange.account, bucketName)
    return make(exchange, terms, { bucketName, key: WHOLE_BUCKET, token })
  },
})

async function plainTerms(exchange: SignedExchange): Promise<DealTerms> {
  try {
    return readTerms(await TextMembers.read(exchange))
  } catch (error) {
    const isBody = error instanceof GatewayError && error.kind === 'InvalidBody'
    throw isBody ? new GatewayError('InvalidDeal', { value: error.message }) : error
  }
}

/** POST deal/<bucket>/<object> */
export const dealOfObject = dealEndpoint(objectDeal(plainTerms))

/** POST deals/<bucket> */
export const dealOfBucket = dealEndpoint(bucketDeal(plainTerms))

/**
 * True when a deal of the account with this token is made or pending. It is answered even when the objects it was made
 * of have been removed since.
 */
async function isRepeated({ context, account }: SignedExchange, token: string | undefined): Promise<boolean> {
  return token !== undefined && (await context.dealService.progress(account.id, token)) !== undefined
}

async function make(
  exchange: SignedExchange,
  reader: TermsReader,
  ask: Omit<DealAsk, 'terms' | 'account'>,
): Promise<Outcome | undefined> {
  const terms = await reader(exchange)
  if (terms === undefined) return undefined
  const deal = await exchange.context.dealService.make({ ...ask, terms, account: exchange.account.id })
  return { data: recordOf(deal), message: 'The deal has been made.' }
}

/** The client token of a request. Undefined when the request has no token, or the gateway does not support tokens. */
export function readToken({ context, request }: SignedExchange): string | undefined {
  const header = `${context.names.header}client-token`
  const token = context.features.has('deal-tokens') ? request.headers[header] : undefined
  if (token === undefined) return undefined
  if (typeof token !== 'string' || !TOKEN.test(token)) throw new GatewayError('InvalidHeader', { value: header })
  return token
}

const MINER = /^[\x21-\x7e]{1,64}$/

/** Amount in fil with up to 18 decimals, the precision of an attofil. */
const PRICE = /^\d{1,12}(\.\d{1,18})?$/
const DURATION = /^\d{1,9}$/

/** Reads the terms from the body of a request. Throws GatewayError InvalidDeal, whose message says what to send. */
export function readTerms(members: TextMembers, fastRetrieval = inEitherSpelling(members)): DealTerms {
  const minerId = members.get('MinerId')
  if (!MINER.test(minerId)) throw invalidDeal('MinerId must name the storage provider, as in "t03354".')
  const price = members.get('Price')
  if (!PRICE.test(price)) {
    throw invalidDeal(
      'Price must be a decimal number of fil per epoch, with up to 18 digits behind the point, as in "0.000005".',
    )
  }
  const duration = Number(DURATION.test(members.get('Duration')) ? members.get('Duration') : 0)
  if (duration === 0) {
    throw invalidDeal('Duration must be a whole number of epochs above 0, as in "518400": there are 2880 a day.')
  }
  return {
    minerId,
    price,
    duration,
    verifiedDeal: readFlag('VerifiedDeal', members.get('VerifiedDeal'), false),
    fastRetrieval: readFlag('FastRetrieval', fastRetrieval, true),
  }
}

/** The interface documents both spellings. */
function inEitherSpelling(members: TextMembers): string {
  const [right, wrong] = [members.get('FastRetrieval'), members.get('FastRetrival')]
  if (right !== '' && wrong !== '' && right !== wrong) {
    throw invalidDeal('FastRetrieval and FastRetrival contradict each other: send one of them.')
  }
  return right === '' ? wrong : right
}

/** @param absent default; Lotus makes deals that are not verified and can be retrieved fast */
function readFlag(name: string, text: string, absent: boolean): boolean {
  if (text === '') return absent
  const flag = text.toLowerCase()
  if (flag !== 'true' && flag !== 'false') throw invalidDeal(`${name} must be "true" or "false".`)
  return flag === 'true'
}

function invalidDeal(value: string): GatewayError {
  return new GatewayError('InvalidDeal', { value })
}

/**
 * GET dealprogress/<token>: progress of the deal, or of the task with offline deals, that the account requested with
 * this client token.
 */
export const dealProgress = dealEndpoint({
  nothing: () => null,
  async run({ context, account }, rest) {
    const token = decode(rest).toString()
    const { dealService, offlineDealService } = context
    const progress =
      (await dealService.progress(account.id, token)) ?? (await offlineDealService?.progress(account.id, token))
    if (progress === undefined) throw new GatewayError('UnknownToken')
    const { phase, bytesDone, bytesTotal, filesDone, filesTotal } = progress
    const data: Document<typeof documents.dealProgress> = { phase, bytesDone, bytesTotal, filesDone, filesTotal }
    return { data, message: '' }
  },
})

/** GET dealstatus/<dealCid>: the status of a deal of the account in the network. */
export const dealStatus = dealEndpoint({
  nothing: () => null,
  async run({ context: { network, db }, account }, rest) {
    const cid = decode(rest).toString()
    const { deals } = db.read
    if (!(await deals.isOf(account.id, cid))) {
      // A crash may have interrupted the making of this deal: while the network cannot say so, nothing is known.
      const pending = await deals.pending()
      if (pending.some((deal) => deal.account === account.id)) await asking(() => network.status(cid))
      throw new GatewayError('NoSuchDeal')
    }
    const status = await asking(() => network.status(cid))
    const { dealCid, dataCid, pieceCid, pieceSize, terms, state, message, startEpoch, endEpoch, epoch } = status
    const { epochSeconds } = network
    const deal = { dealCid, dataCid, pieceCid, pieceSize, minerId: terms.minerId, state, message, startEpoch, endEpoch }
    return { data: { ...deal, epoch, epochSeconds }, message: '' }
  },
})

async function readSubject(exchange: SignedExchange, rest: string) {
  const { context, account } = exchange
  const place = parsePlace(context, rest)
  const bucket = await mustOwnBucket(context, account, place.bucket)
  const members = await TextMembers.read(exchange)
  const generation = members.get('Generation')
  const named = { bucket_name: place.bucket, file_name: place.key.toString(), generation }
  return { key: place.key, bucket, generation, dealCid: members.get('DealCid'), named }
}

/** Runs a comparison with a deal: few at a time, until the gateway stops. */
function compare<T>({ tasks, evictionSlots }: GatewayContext, job: (signal: AbortSignal) => Promise<T>): Promise<T> {
  return tasks.run((signal) => evictionSlots(() => job(signal), signal))
}

/**
 * POST evict/<bucket>/<object>: evicts the local copy of one generation after comparing it with a retrieval from the
 * deal of `DealCid`, or from any deal.
 */
export const evictObject = dealEndpoint({
  nothing: () => null,
  async run(exchange, rest) {
    const { context } = exchange
    const { key, bucket, generation, dealCid, named } = await readSubject(exchange, rest)
    if (generation === '') {
      throw new GatewayError('InvalidBody', { value: 'Generation must name the generation to evict.' })
    }
    const meant = { generation, dealCid: dealCid || undefined }
    const { copy, size } = await compare(context, (signal) => evict(context, bucket, key, meant, signal))
    return {
      data: { ...named, dealCid: copy.dealCid, minerId: copy.minerId, size },
      message: 'The local copy has been evicted: the object is in the deal.',
    }
  },
})

/** POST verify/<bucket>/<object>: retrieves one generation from one deal and compares it. Changes nothing. */
export const verifyObject = dealEndpoint({
  nothing: () => null,
  async run(exchange, rest) {
    const { context } = exchange
    const { key, bucket, generation, dealCid, named } = await readSubject(exchange, rest)
    const meant = { generation, dealCid }
    const held = await compare(context, (signal) => verify(context, bucket, key, meant, signal))
    return {
      data: { ...named, dealCid: held.dealCid, minerId: held.minerId, size: held.file.size },
      message: 'The deal has delivered the object, byte for byte.',
    }
  },
})

const LISTED = 1000

/**
 * GET deallist?since=: the deals that the account has requested since then, in ms since 1970, made or pending, oldest
 * first. `next` is the value of `after` for those behind the last one.
 */
export const dealList = dealEndpoint({
  nothing: () => null,
  async run({ context: { db }, account, target: { parameters } }) {
    const [since, after] = ['since', 'after'].map((name) => {
      const text = parameters.get(name) ?? '0'
      if (!/^\d{1,15}$/.test(text)) throw new GatewayError('InvalidArguments')
      return Number(text)
    }) as [number, number]
    const rows = await db.read.deals.since(account.id, rfc3339(BigInt(since) * 1_000_000n), after, LISTED)
    const list = rows.map(({ bucketName, key, token, terms, record, asked, task }) => ({
      bucket_name: bucketName,
      file_name: key.toString(),
      clientToken: token ?? '',
      dealCid: record?.dealCid ?? '',
      price: terms.price,
      duration: String(terms.duration),
      asked,
      offline: task !== null,
    }))
    const next = rows.length < LISTED ? '' : String(rows.at(-1)?.id)
    return { data: { deals: list, next }, message: '' }
  },
})

/** GET providers: the providers that accept deals, in the terms of the task platform. */
export const listProviders = dealEndpoint({
  nothing: () => null,
  async run({ context: { network } }) {
    const providers = await asking(() => network.providers())
    // The start of the current status is unknown, so the time is that of this answer.
    const updated = Math.floor(Date.now() / 1000)
    const list = providers.map((provider) => providerRecord({ ...provider, updated }))
    return { data: { providers: list, epoch: network.epoch(), epochSeconds: network.epochSeconds }, message: '' }
  },
})

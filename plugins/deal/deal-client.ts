import type { z } from 'zod'
import { OutcomeUnknown } from '../../src/errors/outcome-unknown.js'
import { S3Error } from '../../src/errors/s3-error.js'
import { translate } from '../../src/gateway/errors.js'
import type { Gateway, GatewayAnswer, GatewayCall } from '../../src/gateway/gateway.js'
import { type Logger, redact } from '../../src/log.js'
import {
  dealState,
  envelope,
  type GatewayDeal,
  type GatewayDealState,
  type GatewayProgress,
  type GatewayProvider,
  gatewayDeal,
  history,
  type historyEntry,
  progress,
  providers,
} from './deal-wire.js'
import type { DealTerms } from './terms.js'

/** What a deal is about: an object, or without key a bucket. */
export interface DealSubject {
  readonly bucket: string
  readonly key?: string
}

export interface DealOrder extends DealSubject {
  readonly terms: DealTerms
  /** For gateways with `dealTokens`: the same again answers the deal that was made first. */
  readonly token?: string
  readonly timeoutMs: number
  readonly signal?: AbortSignal
}

export type HistoryEntry = z.output<typeof historyEntry>

export interface History {
  /** Oldest first; undefined when the gateway does not say, as public ones for what never had a deal. */
  readonly entries: readonly HistoryEntry[] | undefined
  /** All that the gateway has said. */
  readonly raw: unknown
}

/** Of the text that a gateway answers, at most so much goes into a message. */
const QUOTED = 500

/** The gateway's deal endpoints. Reads throw UpstreamBadResponse for answers that make no sense, and what Gateway.call throws. */
export class DealClient {
  readonly #gateway: Gateway
  readonly #log: Logger

  constructor(gateway: Gateway, log: Logger) {
    this.#gateway = gateway
    this.#log = log
  }

  /**
   * Has a deal made. Resolves when it was. Throws S3Error (DealRejected and others) when it surely was not, OutcomeUnknown when nobody can tell.
   */
  async makeDeal(order: DealOrder): Promise<GatewayDeal> {
    const { bucket, key, terms, token, timeoutMs, signal } = order
    const answer = await this.#gateway.call({
      method: 'POST',
      endpoint: key === undefined ? 'deals' : 'deal',
      bucket,
      key,
      access: 'read',
      body: bodyOf(terms),
      ...(token !== undefined && { headers: { 'client-token': token } }),
      timeoutMs,
      signal,
    })
    return this.#madeDeal(answer, order)
  }

  /** The deals that were made about the subject. */
  async history({ bucket, key }: DealSubject): Promise<History> {
    const answer = await this.#gateway.call({
      method: 'GET',
      endpoint: key === undefined ? 'bucket/retrieve' : 'retrieve',
      bucket,
      key,
      keyInOneSegment: true,
      // Gateways that would bring back an object which they hold no copy of only tell its deals then.
      headers: { 'history-only': 'true' },
      access: 'read',
    })
    // A miss in its store of records, which it cannot tell from a failure: filswan/fs3 cmd/web-handlers.go.
    if (answer.status === 500) return { entries: undefined, raw: answer.json ?? answer.text }
    const data = this.#data(answer, history, { bucket, key })
    return { entries: (data?.deals ?? []).filter((entry) => isOf(entry, bucket, key)), raw: answer.json }
  }

  /** Undefined when no deal was asked for with this token, as far as one is under way or made. */
  async progress(token: string, signal?: AbortSignal): Promise<GatewayProgress | undefined> {
    const answer = await this.#gateway.call({
      method: 'GET',
      endpoint: 'dealprogress',
      id: token,
      access: 'read',
      signal,
    })
    return answer.status === 404 ? undefined : this.#data(answer, progress, {})
  }

  /** Undefined for a deal that the gateway does not know. */
  async state(dealCid: string): Promise<GatewayDealState | undefined> {
    const answer = await this.#gateway.call({ method: 'GET', endpoint: 'dealstatus', id: dealCid, access: 'read' })
    return answer.status === 404 ? undefined : this.#data(answer, dealState, {})
  }

  /** Throws NotImplemented when the gateway does not know the call. */
  async providers(): Promise<readonly GatewayProvider[]> {
    const answer = await this.#gateway.call({ method: 'GET', endpoint: 'providers', access: 'read' })
    return this.#data(answer, providers, {})?.providers ?? []
  }

  #madeDeal(answer: GatewayAnswer, { bucket, key }: DealSubject): GatewayDeal {
    const said = envelope.safeParse(answer.json).data
    if (answer.status === 200 && said) {
      if (!isSuccess(said.status)) throw rejected(said.message || said.status, said.status)
      const deal = gatewayDeal.safeParse(said.data).data
      if (deal?.dealCid) return deal
      throw new OutcomeUnknown('The object gateway says that it made the deal, but not which.')
    }
    if (isPage(answer)) throw makesNoDeals()
    // Of a body that it could not read it says so in plain text, with 200.
    if (answer.status === 200 && /^bad request\b/i.test(answer.text)) throw rejected(quote(answer.text), 'fail')
    if (answer.status === 501) throw makesNoDeals()
    if (answer.status >= 400 && answer.status < 500)
      throw translate(
        { kind: 'http', status: answer.status, text: answer.text, headerCode: undefined },
        { bucket, key },
        this.#log,
      )
    // A proxy on the way that lost patience answers so too: the gateway may be at it, or done.
    throw new OutcomeUnknown(`The object gateway answered ${answer.status} to the deal: ${quote(answer.text)}`)
  }

  /** What is wrapped in the answer to a read. */
  #data<T>(answer: GatewayAnswer, schema: z.ZodType<T>, { bucket, key }: Partial<DealSubject>): T | undefined {
    if (isPage(answer) || answer.status === 501) throw unknownCall()
    if (answer.status >= 500) throw new S3Error('UpstreamUnavailable', { headers: { 'retry-after': '2' } })
    if (answer.status >= 400)
      throw translate(
        { kind: 'http', status: answer.status, text: answer.text, headerCode: undefined },
        { bucket, key },
        this.#log,
      )
    const said = envelope.safeParse(answer.json).data
    if (!said) throw this.#nonsense(answer)
    if (!isSuccess(said.status)) throw badResponse(`The object gateway answered: ${quote(said.message || said.status)}`)
    if (said.data === null || said.data === undefined || said.data === '') return undefined
    const read = schema.safeParse(said.data)
    if (!read.success) throw this.#nonsense(answer)
    return read.data
  }

  #nonsense(answer: GatewayAnswer): S3Error {
    this.#log.warn(
      { upstream: { status: answer.status, text: quote(answer.text) } },
      'unknown answer of the object gateway',
    )
    return badResponse('The object gateway gave an answer that cannot be understood. It is in the log.')
  }
}

/** All members are strings. Both spellings: the description of the interface has one of them for buckets and the other for objects, and gateways read either. */
function bodyOf(terms: DealTerms): GatewayCall['body'] {
  return {
    MinerId: terms.minerId,
    Price: terms.price,
    Duration: String(terms.duration),
    VerifiedDeal: String(terms.verifiedDeal),
    FastRetrieval: String(terms.fastRetrieval),
    FastRetrival: String(terms.fastRetrieval),
  }
}

function isSuccess(status: string): boolean {
  return status.toLowerCase() === 'success'
}

/** The page of a console stands for an address that the gateway does not know. */
function isPage({ status, json, text }: GatewayAnswer): boolean {
  return json === undefined && ((status === 200 && /^\s*<(!doctype|html)/i.test(text)) || status === 405)
}

/**
 * Public gateways keep histories under `<bucket>_<key>`, where `a_b` with `c` is the same as `a` with `b_c` (filswan/fs3 cmd/web-handlers.go): entries whose file is
 * that of such another pair are not ours.
 */
function isOf({ data }: HistoryEntry, bucket: string, key: string | undefined): boolean {
  const file = data?.filename ?? ''
  if (key === undefined || file === '' || file.endsWith(`/${bucket}/${key}`)) return true
  const joined = `${bucket}_${key}`
  for (let at = joined.indexOf('_'); at >= 0; at = joined.indexOf('_', at + 1))
    if (at !== bucket.length && file.endsWith(`/${joined.slice(0, at)}/${joined.slice(at + 1)}`)) return false
  return true
}

/** The gateway's own words are for the client: they say why. */
function rejected(message: string, status: string): S3Error {
  const fields = { Service: 'gateway', UpstreamStatus: status }
  if (/wallet address/i.test(message))
    return new S3Error('WalletNotLinked', { message: `The object gateway answered: ${quote(message)}`, fields })
  return new S3Error('DealRejected', { message: quote(message), fields })
}

function unknownCall(): S3Error {
  return new S3Error('NotImplemented', { message: 'The object gateway does not know this call.' })
}

function makesNoDeals(): S3Error {
  return new S3Error('NotImplemented', { message: 'The object gateway does not know this call: it makes no deals.' })
}

function badResponse(message: string): S3Error {
  return new S3Error('UpstreamBadResponse', { message })
}

function quote(text: string): string {
  return redact(text.trim().slice(0, QUOTED))
}

import type { ProviderDocument } from 'dealgate/paid'
import {
  type Gateway,
  type GatewayAnswer,
  type GatewayCall,
  type Logger,
  OutcomeUnknown,
  redact,
  S3Error,
} from 'dealgate/plugin'
import type { z } from 'zod'
import {
  dealList,
  dealState,
  envelope,
  type GatewayDeal,
  type GatewayDealState,
  type GatewayProgress,
  gatewayDeal,
  type HistoryEntry,
  history,
  type ListedDeal,
  progress,
  providers,
} from './deal-answers.js'
import type { DealTerms } from './terms/terms.js'

export interface DealSubject {
  readonly bucket: string
  readonly key?: string
}

interface DealOrder extends DealSubject {
  /** Revision of the version to make a deal of; the gateway refuses another one. Default: whichever object is there. */
  readonly revision?: string | undefined
  readonly terms: DealTerms
  /** For gateways with `dealTokens`: a repeated request with the same token returns the deal of the first. */
  readonly token?: string
  readonly timeoutMs: number
  readonly signal?: AbortSignal
}

export interface History {
  /** Oldest first; undefined when the gateway gives no list, as public ones do for a subject without deals. */
  readonly entries: readonly HistoryEntry[] | undefined
  readonly raw: unknown
}

/** Longest part of the gateway's text that a message quotes, characters. */
const MAX_QUOTED = 500

/**
 * The gateway's deal endpoints. Reads throw UpstreamBadResponse for answers that they cannot parse, and what
 * Gateway.call throws.
 */
export class DealClient {
  readonly #gateway: Gateway
  readonly #log: Logger

  constructor(gateway: Gateway, log: Logger) {
    this.#gateway = gateway
    this.#log = log
  }

  /**
   * Makes a deal and resolves with it. Throws S3Error (DealRejected and others) when the gateway itself refused or was
   * not reached, so that certainly no deal was made, and OutcomeUnknown for every other answer.
   */
  async makeDeal(order: DealOrder): Promise<GatewayDeal> {
    const { bucket, key, revision, terms, token, timeoutMs, signal } = order
    const headers = {
      ...(revision !== undefined && (await ofVersion({ gateway: this.#gateway }, revision))),
      ...(token !== undefined && { 'client-token': token }),
    }
    const answer = await this.#gateway.call({
      method: 'POST',
      endpoint: key === undefined ? 'deals' : 'deal',
      bucket,
      key,
      access: 'read',
      body: bodyOf(terms),
      headers,
      timeoutMs,
      signal,
    })
    return madeDeal(answer)
  }

  async history({ bucket, key }: DealSubject): Promise<History> {
    const answer = await this.#gateway.call({
      method: 'GET',
      endpoint: key === undefined ? 'bucket/retrieve' : 'retrieve',
      bucket,
      key,
      keyInOneSegment: true,
      // Some gateways restore an object without a local copy on this call; with this header they only list its deals.
      headers: { 'history-only': 'true' },
      access: 'read',
    })
    if (isMiss(answer)) return { entries: undefined, raw: answer.json ?? answer.text }
    const data = this.#data(answer, history)
    // An answer without a history must not be taken for an empty history.
    if (!data) throw this.#nonsense(answer)
    return { entries: (data.deals ?? []).filter((entry) => isOf(entry, bucket, key)), raw: answer.json }
  }

  /** Progress of the deal that was requested with this token; undefined when the gateway knows none. */
  async progress(token: string, signal?: AbortSignal): Promise<GatewayProgress | undefined> {
    const answer = await this.#gateway.call({
      method: 'GET',
      endpoint: 'dealprogress',
      id: token,
      access: 'read',
      signal,
    })
    if (isUnknownToGateway(answer)) return undefined
    const reported = this.#data(answer, progress)
    if (!reported) throw this.#nonsense(answer)
    return reported
  }

  /** Deals that the account has requested since then, ms since 1970, for gateways with `dealList`. */
  async listedSince(since: number): Promise<readonly ListedDeal[]> {
    const found: ListedDeal[] = []
    for (let after = '0'; after !== ''; ) {
      const query = { since: String(since), after }
      const answer = await this.#gateway.call({ method: 'GET', endpoint: 'deallist', query, access: 'read' })
      const page = this.#data(answer, dealList)
      if (!page) throw this.#nonsense(answer)
      found.push(...page.deals)
      after = page.next
    }
    return found
  }

  /** State of a deal; undefined for a deal that the gateway does not know. */
  async state(dealCid: string): Promise<GatewayDealState | undefined> {
    const answer = await this.#gateway.call({ method: 'GET', endpoint: 'dealstatus', id: dealCid, access: 'read' })
    return isUnknownToGateway(answer) ? undefined : this.#data(answer, dealState)
  }

  /** Lists the storage providers. Throws NotImplemented when the gateway does not know the call. */
  async providers(): Promise<readonly ProviderDocument[]> {
    const answer = await this.#gateway.call({ method: 'GET', endpoint: 'providers', access: 'read' })
    return this.#data(answer, providers)?.providers ?? []
  }

  #data<T>(answer: GatewayAnswer, schema: z.ZodType<T>): T | undefined {
    if (isPage(answer) || answer.status === 501) throw unknownCall()
    if (answer.status >= 500) throw new S3Error('UpstreamUnavailable', { headers: { 'retry-after': '2' } })
    if (answer.status >= 400) throw answer.toError()
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
    return badResponse('The object gateway gave an unexpected answer. It is in the log.')
  }
}

/** The header by which a gateway with versions knows which of them is meant. */
export async function ofVersion(
  { gateway }: { readonly gateway: Pick<Gateway, 'features'> },
  revision: string,
): Promise<Readonly<Record<string, string>>> {
  return (await gateway.features()).versions ? { 'of-generation': revision } : {}
}

/** The deal in the gateway's answer. Throws as DealClient.makeDeal does. */
function madeDeal(answer: GatewayAnswer): GatewayDeal {
  const { status } = answer
  const said = envelope.safeParse(answer.json).data
  if (status === 200 && said && isSuccess(said.status)) {
    const deal = gatewayDeal.safeParse(said.data).data
    if (deal?.dealCid) return deal
    throw new OutcomeUnknown('The object gateway reported a deal but did not name it.')
  }
  throw failureOfOrder(answer)
}

/**
 * The error for an answer that is no success: S3Error when the gateway itself refused, so that it certainly did
 * nothing, OutcomeUnknown otherwise.
 * @param inner the refusal of another service that the gateway reports within a success
 */
export function failureOfOrder(answer: GatewayAnswer, inner?: string): S3Error | OutcomeUnknown {
  const { status, text } = answer
  if (inner !== undefined) return rejected(inner, 'fail')
  // The gateway reports a body that it cannot read in plain text, with status 200.
  if (status === 200 && /^bad request: \S/.test(text)) return rejected(quote(text), 'fail')
  const { refusal } = answer
  // 409: the gateway knows a deal with this token.
  if (refusal === undefined || status === 409)
    return new OutcomeUnknown(`The outcome of the deal is unknown after the answer ${status}: ${quote(text)}`)
  if (status === 200) return rejected(refusal, 'fail')
  const known = answer.toError()
  return known.status < 500 ? known : rejected(refusal, 'fail')
}

/**
 * All members are strings. FastRetrieval is sent in two spellings: the interface specifies one of them for buckets and
 * the other for objects, and gateways read either.
 */
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

/**
 * True for a miss in the gateway's store of deals, which it cannot tell from a failure (filswan/fs3
 * cmd/web-handlers.go). A 500 with another text comes from a proxy in between.
 */
function isMiss({ status, failure, text }: GatewayAnswer): boolean {
  return status === 500 && /^We encountered an internal error\b/.test(failure ?? text)
}

/** True when the gateway itself says that there is no such deal. */
function isUnknownToGateway({ status, failure }: GatewayAnswer): boolean {
  return status === 404 && failure !== undefined
}

/** True for the page of a console, which a gateway returns for an address that it does not know. */
function isPage({ status, json, text }: GatewayAnswer): boolean {
  return json === undefined && ((status === 200 && /^\s*<(!doctype|html)/i.test(text)) || status === 405)
}

/**
 * Public gateways keep histories under `<bucket>_<key>`, where `a_b` with `c` is the same as `a` with `b_c`
 * (filswan/fs3 cmd/web-handlers.go): entries whose file belongs to another such pair are left out.
 */
function isOf({ data }: HistoryEntry, bucket: string, key: string | undefined): boolean {
  const file = data?.filename ?? ''
  if (key === undefined || file === '' || file.endsWith(`/${bucket}/${key}`)) return true
  const joined = `${bucket}_${key}`
  for (let at = joined.indexOf('_'); at >= 0; at = joined.indexOf('_', at + 1))
    if (at !== bucket.length && file.endsWith(`/${joined.slice(0, at)}/${joined.slice(at + 1)}`)) return false
  return true
}

/** The client gets the gateway's own text, because it gives the reason. */
function rejected(message: string, status: string): S3Error {
  const fields = { Service: 'gateway', UpstreamStatus: status }
  if (/wallet address/i.test(message))
    return new S3Error('WalletNotLinked', { message: `The object gateway answered: ${quote(message)}`, fields })
  return new S3Error('DealRejected', { message: quote(message), fields })
}

function unknownCall(): S3Error {
  return new S3Error('NotImplemented', { message: 'The object gateway does not know this call.' })
}

function badResponse(message: string): S3Error {
  return new S3Error('UpstreamBadResponse', { message })
}

function quote(text: string): string {
  return redact(text.trim().slice(0, MAX_QUOTED))
}

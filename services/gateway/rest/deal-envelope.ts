import { type Document, documents } from '../../../common/service-documents.js'
import { replyJson } from '../../http/reply.js'
import type { Fault, NetworkControl } from '../../network/embedded/control.js'
import { NetworkError } from '../../network/network.js'
import type { Account } from '../accounts/accounts.js'
import type { CompleteDeal } from '../deals/deals.js'
import { GatewayError } from '../errors.js'
import { asGatewayError, collect, type GatewayExchange, retryOf } from '../exchange.js'

/** Result of an endpoint. `data` is a member of the envelope in both success and failure. */
export interface Outcome {
  readonly data: unknown
  readonly message: string
}

export interface SignedExchange extends GatewayExchange {
  readonly account: Account
}

/**
 * An endpoint about deals. It answers in JSON, errors included, and is for accounts only; those about a bucket are for
 * its owner only, because deals cost money and retrievals use disk space.
 */
export interface DealEndpoint {
  /** Value of `data` in a failure. */
  nothing(rest: string): unknown
  /** Undefined when the response has already been sent. */
  run(exchange: SignedExchange, rest: string): Promise<Outcome | undefined>
}

export function dealEndpoint({
  nothing,
  run,
}: DealEndpoint): (exchange: GatewayExchange, rest: string) => Promise<void> {
  return async (exchange, rest) => {
    try {
      if (exchange.identity === 'anonymous') throw new GatewayError('InvalidToken')
      const outcome = await run({ ...exchange, account: exchange.identity }, rest)
      if (outcome === undefined) return
      const { data, message } = outcome
      replyJson(exchange, 200, { data, status: 'success', message })
    } catch (error) {
      replyFailure(exchange, error, nothing(rest))
    }
  }
}

function replyFailure(exchange: GatewayExchange, error: unknown, data: unknown): void {
  const { errors, names } = exchange.context
  const known = asGatewayError(error, exchange)
  replyJson(exchange, known.status, { data, status: 'fail', message: errors.text(known) }, [
    ...errors.headers(known, names),
    ...retryOf(known),
  ])
}

/** The record of a deal in the terms of the interface: all members are texts, `timeStamp` in microseconds. */
export function recordOf({ bucketName, key, record }: CompleteDeal): Document<typeof documents.gatewayDeal> {
  const { terms } = record
  return {
    filename: key.length === 0 ? `/${bucketName}` : `/${bucketName}/${key}`,
    walletAddress: record.walletAddress,
    verifiedDeal: String(terms.verifiedDeal),
    fastRetrieval: String(terms.fastRetrieval),
    dataCid: record.dataCid,
    minerId: terms.minerId,
    price: terms.price,
    duration: String(terms.duration),
    dealCid: record.dealCid,
    timeStamp: String(record.timeStamp),
  }
}

export const noRecord: object = Object.fromEntries(Object.keys(documents.gatewayDeal).map((name) => [name, '']))

/** Runs a query to the network. Throws GatewayError NoSuchDeal or NetworkUnavailable. */
export async function asking<T>(question: () => Promise<T>): Promise<T> {
  try {
    return await question()
  } catch (error) {
    if (!(error instanceof NetworkError)) throw error
    if (error.code === 'NoSuchDeal') throw new GatewayError('NoSuchDeal', {}, error)
    throw new GatewayError('NetworkUnavailable', { value: error.message }, error)
  }
}

const FAULTS: Readonly<Record<string, Fault>> = {
  offline: 'offline',
  rejects: 'rejects',
  'loses-data': 'losesData',
  'corrupts-data': 'corruptsData',
  slow: 'slow',
}

/**
 * POST network/control: advances the time of the storage network, or switches a fault of a provider. For tests and
 * demonstrations, and for the first account only.
 */
export const networkControl = dealEndpoint({
  nothing: () => null,
  async run(exchange, rest) {
    const { control, network } = exchange.context
    if (rest !== 'control' || control === undefined) throw new GatewayError('NotFound')
    // The network is that of all accounts.
    if (exchange.account.isIamUser) throw new GatewayError('NotPermitted')
    await act(control, await TextMembers.read(exchange))
    const faults = (await control.faults()).map(({ minerId, fault }) => ({ minerId, fault: nameOf(fault) }))
    return { data: { faults, epoch: network.epoch() }, message: '' }
  },
})

async function act(control: NetworkControl, members: TextMembers): Promise<void> {
  const epochs = members.get('AdvanceEpochs')
  if (epochs !== '') {
    if (!/^[1-9]\d{0,8}$/.test(epochs)) throw invalid('AdvanceEpochs must be a whole number from 1 to 999999999.')
    return control.advance(Number(epochs))
  }
  const name = members.get('Fault')
  const fault = Object.hasOwn(FAULTS, name) ? FAULTS[name] : undefined
  const on = members.get('On')
  if (fault === undefined || (on !== 'true' && on !== 'false')) {
    throw invalid(
      `Send {"AdvanceEpochs": "…"}, or {"MinerId": "…", "Fault": "…", "On": "true" or "false"}; faults are ${Object.keys(FAULTS).join(', ')}.`,
    )
  }
  try {
    await control.setFault(members.get('MinerId'), fault, on === 'true')
  } catch (error) {
    throw error instanceof NetworkError ? invalid(error.message) : error
  }
}

function nameOf(fault: Fault): string | undefined {
  return Object.keys(FAULTS).find((name) => FAULTS[name] === fault)
}

function invalid(value: string): GatewayError {
  return new GatewayError('InvalidBody', { value })
}

/**
 * A JSON object of strings. Its member names are case-insensitive, as in Go's decoder. An empty body has no members.
 */
export class TextMembers {
  readonly #members = new Map<string, string>()

  private constructor(given: object) {
    for (const [name, value] of Object.entries(given)) {
      if (typeof value !== 'string') throw invalid(`The member ${name} must be a text, as in {"${name}": "…"}.`)
      if (!value.isWellFormed()) throw invalid(`The member ${name} is not well-formed Unicode.`)
      this.#members.set(name.toLowerCase(), value)
    }
  }

  /** Throws GatewayError InvalidBody. */
  static async read(exchange: GatewayExchange): Promise<TextMembers> {
    const body = await collect(exchange, MAX_BODY_BYTES)
    if (body.length === 0) return new TextMembers({})
    let given: unknown
    try {
      given = JSON.parse(decoder.decode(body))
    } catch {
      throw invalid('The body must be a JSON object of texts.')
    }
    if (typeof given !== 'object' || given === null || Array.isArray(given)) {
      throw invalid('The body must be a JSON object of texts.')
    }
    return new TextMembers(given)
  }

  /** Returns '' when the member is absent. */
  get(name: string): string {
    return this.#members.get(name.toLowerCase()) ?? ''
  }
}

/** Largest request body of endpoints about deals, bytes. */
const MAX_BODY_BYTES = 64 * 1024

const decoder = new TextDecoder('utf-8', { fatal: true })

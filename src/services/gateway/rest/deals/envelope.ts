import { type HeaderList, reply } from '../../../http/reply.js'
import type { Account } from '../../accounts/accounts.js'
import type { CompleteDeal } from '../../deals/deals.js'
import { GatewayError } from '../../errors.js'
import type { Exchange } from '../../http/exchange.js'
import { asGatewayError } from '../../http/reply-error.js'

export const JSON_TYPE: HeaderList = ['Content-Type', 'application/json; charset=utf-8']

/** Result of an endpoint. `data` is a member of the envelope in both success and failure. */
export interface Outcome {
  readonly data: unknown
  readonly message: string
}

/** A request of an account. */
export interface SignedExchange extends Exchange {
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

/** Adapts the endpoint to the router. */
export function dealEndpoint({ nothing, run }: DealEndpoint): (exchange: Exchange, rest: string) => Promise<void> {
  return async (exchange, rest) => {
    try {
      if (exchange.identity === 'anonymous') throw new GatewayError('InvalidToken')
      const outcome = await run({ ...exchange, account: exchange.identity }, rest)
      if (outcome !== undefined) replyOutcome(exchange, outcome)
    } catch (error) {
      replyFailure(exchange, error, nothing(rest))
    }
  }
}

function replyOutcome(exchange: Exchange, { data, message }: Outcome): void {
  reply(exchange, 200, [...JSON_TYPE], Buffer.from(JSON.stringify({ data, status: 'success', message })))
}

function replyFailure(exchange: Exchange, error: unknown, data: unknown): void {
  const { quirks, names } = exchange.context
  const known = asGatewayError(error, exchange)
  const code: HeaderList = quirks.has('code-zero-errors') ? [] : [`${names.header}error-code`, known.code]
  const text = JSON.stringify({ data, status: 'fail', message: known.restText(quirks) })
  reply(exchange, known.status, [...JSON_TYPE, ...code], Buffer.from(text))
}

/** The record of a deal in the terms of the interface: all members are texts, `timeStamp` in microseconds. */
export function recordOf({ bucketName, key, record }: CompleteDeal): Record<string, string> {
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

/** Value of `data` without a record. */
export const noRecord: Readonly<Record<string, string>> = Object.freeze({
  filename: '',
  walletAddress: '',
  verifiedDeal: '',
  fastRetrieval: '',
  dataCid: '',
  minerId: '',
  price: '',
  duration: '',
  dealCid: '',
  timeStamp: '',
})

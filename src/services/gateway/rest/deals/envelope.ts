import type { CompleteDeal } from '../../deals/deals.js'
import { GatewayError } from '../../errors.js'
import type { Exchange } from '../../http/exchange.js'
import { type HeaderList, reply } from '../../http/reply.js'
import { asGatewayError } from '../../http/reply-error.js'

export const JSON_TYPE: HeaderList = ['Content-Type', 'application/json; charset=utf-8']

/** What an endpoint answers: `data` is a member of the envelope, whatever came of the request. */
export interface Outcome {
  readonly data: unknown
  readonly message: string
}

/** An endpoint of deals. These answer JSON, also their errors, and are for the owner alone: deals cost money, retrievals disk. */
export interface DealEndpoint {
  /** `data` of a failure. */
  nothing(rest: string): unknown
  /** undefined: it has been answered. */
  run(exchange: Exchange, rest: string): Promise<Outcome | undefined>
}

/** The endpoint as the router wants it. */
export function dealEndpoint({ nothing, run }: DealEndpoint): (exchange: Exchange, rest: string) => Promise<void> {
  return async (exchange, rest) => {
    try {
      if (exchange.identity !== 'owner') throw new GatewayError('InvalidToken')
      const outcome = await run(exchange, rest)
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
  const text = JSON.stringify({ data, status: 'fail', message: known.restMessage })
  reply(exchange, known.status, [...JSON_TYPE, ...code], Buffer.from(text))
}

/** The record of a deal in the words of the interface: all texts, `timeStamp` in microseconds. */
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

/** What stands for a record where there is none. */
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

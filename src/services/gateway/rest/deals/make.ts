import type { DealTerms } from '../../../network/network.js'
import { mustOwnBucket } from '../../bucket-name.js'
import type { DealAsk } from '../../deals/deals.js'
import { GatewayError } from '../../errors.js'
import { replyText } from '../../http/reply.js'
import { decode } from '../../http/target.js'
import { parsePlace } from '../place.js'
import { dealEndpoint, noRecord, type Outcome, recordOf, type SignedExchange } from './envelope.js'
import { readTerms, readTermsUnchecked } from './terms.js'
import { TextMembers } from './text-members.js'

const TOKEN = /^[\x20-\x7e]{1,128}$/
const WHOLE_BUCKET = Buffer.alloc(0)

/** POST deal/<bucket>/<object>: makes a deal of one object. */
export const dealOfObject = dealEndpoint({
  nothing: () => noRecord,
  async run(exchange, rest) {
    const { context, account } = exchange
    const { bucket: bucketName, key } = parsePlace(context, rest)
    const token = readToken(exchange)
    if (!isRepeated(exchange, token)) {
      const { id } = mustOwnBucket(context, account, bucketName)
      if (context.objects.find(id, key) === undefined) throw new GatewayError('NoSuchKey')
    }
    return make(exchange, { bucketName, key, token })
  },
})

/** POST deals/<bucket>: makes one deal of all objects in the bucket. */
export const dealOfBucket = dealEndpoint({
  nothing: () => noRecord,
  async run(exchange, rest) {
    const bucketName = decode(rest).toString()
    const token = readToken(exchange)
    if (!isRepeated(exchange, token)) mustOwnBucket(exchange.context, exchange.account, bucketName)
    return make(exchange, { bucketName, key: WHOLE_BUCKET, token })
  },
})

/**
 * True when a deal of the account with this token is made or pending. It is answered even when the objects it was made
 * of have been removed since.
 */
function isRepeated({ context, account }: SignedExchange, token: string | undefined): boolean {
  return token !== undefined && context.desk.progress(account.id, token) !== undefined
}

async function make(exchange: SignedExchange, ask: Omit<DealAsk, 'terms' | 'account'>): Promise<Outcome | undefined> {
  const terms = await readBody(exchange)
  if (terms === undefined) return undefined
  const deal = await exchange.context.desk.make({ ...ask, terms, account: exchange.account.id })
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

/** Undefined when an error response has been sent. */
async function readBody(exchange: SignedExchange): Promise<DealTerms | undefined> {
  const unchecked = exchange.context.quirks.has('unchecked-deals')
  try {
    const members = await TextMembers.read(exchange)
    return unchecked ? readTermsUnchecked(members) : readTerms(members)
  } catch (error) {
    if (!(error instanceof GatewayError) || error.kind !== 'InvalidBody') throw error
    if (!unchecked) throw new GatewayError('InvalidDeal', { value: error.message })
    replyText(exchange, 200, `bad request: ${error.message}`)
    return undefined
  }
}

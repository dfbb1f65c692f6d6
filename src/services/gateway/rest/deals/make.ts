import type { DealTerms } from '../../../network/network.js'
import { mustFindBucket } from '../../bucket-name.js'
import type { DealAsk } from '../../deals/deals.js'
import { GatewayError } from '../../errors.js'
import type { Exchange } from '../../http/exchange.js'
import { replyText } from '../../http/reply.js'
import { decode } from '../../http/target.js'
import { parsePlace } from '../place.js'
import { dealEndpoint, noRecord, type Outcome, recordOf } from './envelope.js'
import { readTerms, readTermsUnchecked } from './terms.js'
import { TextMembers } from './text-members.js'

const TOKEN = /^[\x20-\x7e]{1,128}$/
const WHOLE_BUCKET = Buffer.alloc(0)

/** POST deal/<bucket>/<object>: backs one object up. */
export const dealOfObject = dealEndpoint({
  nothing: () => noRecord,
  async run(exchange, rest) {
    const { context } = exchange
    const { bucket: bucketName, key } = parsePlace(context, rest)
    const token = readToken(exchange)
    if (!isRepeated(exchange, token)) {
      const { id } = mustFindBucket(context, bucketName)
      if (context.objects.find(id, key) === undefined) throw new GatewayError('NoSuchKey')
    }
    return make(exchange, { bucketName, key, token })
  },
})

/** POST deals/<bucket>: backs all of a bucket up as one. */
export const dealOfBucket = dealEndpoint({
  nothing: () => noRecord,
  async run(exchange, rest) {
    const bucketName = decode(rest).toString()
    const token = readToken(exchange)
    if (!isRepeated(exchange, token)) mustFindBucket(exchange.context, bucketName)
    return make(exchange, { bucketName, key: WHOLE_BUCKET, token })
  },
})

/** Whether there is a deal of this token, or on its way: it is answered also when what it was made of has gone since. */
function isRepeated({ context }: Exchange, token: string | undefined): boolean {
  return token !== undefined && context.desk.progress(token) !== undefined
}

async function make(exchange: Exchange, ask: Omit<DealAsk, 'terms'>): Promise<Outcome | undefined> {
  const terms = await readBody(exchange)
  if (terms === undefined) return undefined
  const deal = await exchange.context.desk.make({ ...ask, terms })
  return { data: recordOf(deal), message: 'The deal has been made.' }
}

/** Undefined when there is none, or this gateway does not know of tokens. */
function readToken({ context, request }: Exchange): string | undefined {
  const header = `${context.names.header}client-token`
  const token = context.features.has('deal-tokens') ? request.headers[header] : undefined
  if (token === undefined) return undefined
  if (typeof token !== 'string' || !TOKEN.test(token)) throw new GatewayError('InvalidHeader', { value: header })
  return token
}

/** Undefined when the refusal has been sent. */
async function readBody(exchange: Exchange): Promise<DealTerms | undefined> {
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

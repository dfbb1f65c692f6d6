import type { DealTerms } from '../../network/network.js'
import { GatewayError } from '../errors.js'
import { decode, replyText, splitFirst } from '../exchange.js'
import type { Endpoint } from '../handler.js'
import { type DealEndpoint, dealEndpoint, type SignedExchange, TextMembers } from '../rest/deal-envelope.js'
import { bucketDeal, objectDeal, readTerms } from '../rest/deals.js'
import { parsePlace } from '../rest/download.js'
import { bucketRetrieval, objectRetrieval, WHOLE_BUCKET } from '../rest/retrieve.js'
import { readGeneration } from '../rest/version-headers.js'
import { mustOwnBucket } from '../store/key-rules.js'
import { mustFindVersion } from '../store/version-reads.js'
import { replyConsolePage } from './console-page.js'
import type { QuirkName } from './quirks.js'

type Quirks = ReadonlySet<QuirkName>
type Handle = Endpoint['handle']

/** POST deal and POST deals of a gateway that does not look at the terms. */
export const uncheckedDealOfObject = dealEndpoint(objectDeal(readUnchecked))
export const uncheckedDealOfBucket = dealEndpoint(bucketDeal(readUnchecked))

async function readUnchecked(exchange: SignedExchange): Promise<DealTerms | undefined> {
  try {
    return uncheckedTerms(await TextMembers.read(exchange))
  } catch (error) {
    if (!(error instanceof GatewayError) || error.kind !== 'InvalidBody') throw error
    replyText(exchange, 200, `bad request: ${error.message}`)
    return undefined
  }
}

/** Knows one spelling of FastRetrieval. Invalid terms fail when the deal is sent. */
function uncheckedTerms(members: TextMembers): DealTerms {
  const flags = ['VerifiedDeal', 'FastRetrieval'].map((name) => members.get(name))
  if (!flags.every((flag) => flag === 'true' || flag === 'false')) throw sendingFailed()
  try {
    return readTerms(members, members.get('FastRetrieval'))
  } catch {
    throw sendingFailed()
  }
}

function sendingFailed(): GatewayError {
  return new GatewayError('DealFailed', { value: 'Sending deal failed during lotus sending deal' })
}

/** GET retrieve/<bucket>/<object> as a gateway with these quirks answers it. */
export function retrievingObject(quirks: Quirks): Handle {
  return dealEndpoint({
    ...objectRetrieval,
    async run(exchange, rest) {
      const { context, account, request } = exchange
      if (quirks.has('retrieve-one-segment') && splitFirst(rest)[1].includes('/')) {
        replyConsolePage(exchange)
        return undefined
      }
      if (quirks.has('history-only')) request.headers[`${context.names.header}history-only`] = 'true'
      if (quirks.has('retrieve-500')) {
        const { bucket, key } = parsePlace(context, rest)
        const { id } = await mustOwnBucket(context, account, bucket)
        await mustFindVersion(context.db.read, id, key, readGeneration(exchange))
        await mustHaveDeals(exchange, id, key)
      }
      return objectRetrieval.run(exchange, rest)
    },
  })
}

/** GET bucket/retrieve/<bucket> of a gateway that fails where no deal was made. */
export const retrievingDealtBucket: Handle = dealEndpoint({
  ...bucketRetrieval,
  async run(exchange, rest) {
    const [word, raw] = splitFirst(rest)
    if (word === 'retrieve') {
      const { id } = await mustOwnBucket(exchange.context, exchange.account, decode(raw).toString())
      await mustHaveDeals(exchange, id, WHOLE_BUCKET)
    }
    return bucketRetrieval.run(exchange, rest)
  },
} satisfies DealEndpoint)

async function mustHaveDeals({ context }: SignedExchange, bucket: number, key: Buffer): Promise<void> {
  const made = await context.db.read.deals.history(bucket, key, 0, 1)
  if (made.length === 0) throw new GatewayError('Internal')
}

import { documents } from 'dealgate/plugin'
import { z } from 'zod'
import { answerShape, lenient, member, membersOf } from './answers.js'

/** An amount in the form of the service that states it; '' if it states none. */
const amount = {
  read: lenient.text,
  shown: z.string().meta({ pattern: String.raw`^\d{1,24}(\.\d{1,60})?([eE][+-]?\d{1,2})?$|^$` }),
}
const score = {
  read: lenient.numeric.transform(Math.round).pipe(z.int()).catch(0),
  shown: z.number().int(),
}
const { price, verified_price } = documents.provider

/**
 * A storage provider in the words of gateways and task platforms.
 * @param timeOf the time of `update_time_str` in RFC 3339; undefined if it is no time
 */
export function providerShape(timeOf: (text: string) => string | undefined) {
  return answerShape({
    ...membersOf(documents.provider, { update_time_str: 'UpdateTime' }),
    MinerId: member('miner_id', { read: lenient.text.pipe(z.string().min(1)), shown: z.string() }),
    Price: member('price', amount, price[1]),
    VerifiedPrice: member('verified_price', amount, verified_price[1]),
    Score: member('score', score),
    UpdatedAt: member(
      'update_time_str',
      { read: lenient.text.transform(timeOf), shown: z.string().optional() },
      'The same in RFC 3339.',
    ),
  })
}

/** A storage provider, as the answers of all plugins show it. */
export const providerDocument = providerShape(() => undefined).shown
export type ProviderDocument = z.output<typeof providerDocument>

/** Average prices of storage, as task platforms and payment services compute them. */
export const priceStatistics = answerShape(membersOf(documents.priceStatistics))

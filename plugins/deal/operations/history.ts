import { defineCall, type Expansion } from 'dealgate/plugin'
import pMap from 'p-map'
import { z } from 'zod'
import { visibility } from '../deal-entries.js'
import type { DealDeps } from '../deps.js'
import { eventDocument, historyOf, historyOfDeal } from '../object-history.js'
import { ofVersion, refOf, SOURCE } from '../subject.js'

/** Most deals whose history is read at the same time. */
const MAX_CONCURRENCY = 8

const events = z.array(eventDocument).meta({ element: 'Event' })

/** Also lists the deals of an object that is no longer there: they may go on. */
export function listObjectHistory(deps: DealDeps) {
  return defineCall({
    name: 'ListObjectHistory',
    source: SOURCE,
    summary: 'Lists what happened to an object, oldest first: stored, deals and their states, evicted, restored.',
    access: 'owner',
    on: { method: 'GET', resource: 'object', subresource: 'x-deal-history' },
    query: ofVersion,
    result: z.object({ Bucket: z.string(), Key: z.string(), History: events }),
    root: 'ObjectHistory',
    pages: 'History',
    async answer({ request: { bucket, key }, query }, context) {
      context.checks.requireKey(bucket, key, 'read')
      return { Bucket: bucket, Key: key, History: [...(await historyOf(deps, context, { bucket, key }, refOf(query)))] }
    },
  })
}

/** `expand=history`: what happened to a deal. */
export function historyExpansion(deps: DealDeps): Expansion {
  return {
    name: 'history',
    member: 'History',
    summary: 'What happened to the deal, oldest first, with times.',
    result: z.object({ Events: events }),
    join(deals, context) {
      const maySee = visibility(context)
      return pMap(
        deals,
        async ({ dealCid }) => {
          const deal = await deps.deals.get(dealCid)
          if (!deal || !(await maySee(deal))) return undefined
          return { Events: await historyOfDeal(deps, deal) }
        },
        { concurrency: MAX_CONCURRENCY },
      )
    },
  }
}

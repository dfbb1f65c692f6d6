import { type Context, S3Error } from 'dealgate'
import type { DealParts } from '../parts.js'
import { type DealRecord, holds } from '../records/deal-record.js'
import { documentOf } from './deal-document.js'

/**
 * The facts that GET and HEAD report as x-amz-meta-<name>: those of the newest deal that holds the object, or of the
 * newest at all, and the number of deals.
 * @param deals for this very object, oldest first; at least one
 */
function factsOf(deals: readonly DealRecord[], epochSeconds: number | undefined): Record<string, string> {
  const told = deals.findLast(holds) ?? deals.at(-1)
  if (!told) return {}
  const { deal, live } = told
  const document = documentOf(deal, live, epochSeconds)
  return {
    ...(deal.dataCid && { cid: deal.dataCid }),
    'deal-cid': deal.dealCid,
    'deal-count': String(deals.length),
    'deal-provider': deal.minerId,
    'deal-status': document.Status,
    ...(told.taskUuid && { 'task-uuid': told.taskUuid }),
    ...(document.EstimatedExpiry && { 'deal-expiry': document.EstimatedExpiry }),
  }
}

const OURS = ['cid', 'deal-cid', 'deal-count', 'deal-provider', 'deal-status', 'deal-expiry']

/** Updates the facts of the object, if it is still the one that the deal holds. */
export async function tellObject(parts: DealParts, context: Context, record: DealRecord): Promise<void> {
  const { bucket, key, stamp } = record
  if (key === undefined || stamp === undefined) return
  const deals = (await parts.deals.of(bucket, key)).filter((deal) => deal.stamp === stamp)
  const facts = factsOf(deals, parts.options.epochSeconds)
  const lost = !deals.some(holds)
  const annotate = ({ store }: Context) =>
    store.annotate(bucket, key, stamp, (archive) => {
      const others = Object.entries(archive?.facts ?? {}).filter(([name]) => !OURS.includes(name))
      const { failed: _, ...told } = archive ?? {}
      return { ...told, ...(lost && { failed: true as const }), facts: { ...Object.fromEntries(others), ...facts } }
    })
  try {
    await annotate(context)
  } catch (error) {
    // A caller who may make deals for an object need not be able to write it.
    if (!(error instanceof S3Error) || error.code !== 'AccessDenied') throw error
    await annotate(parts.host.own)
  }
}

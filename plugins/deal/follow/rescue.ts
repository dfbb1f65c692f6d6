import { dealsHolding } from '../archive/kept-elsewhere.js'
import type { DealParts } from '../parts.js'
import { type DealRecord, isVerified } from '../records/deal-record.js'
import { endBegins } from '../records/schedule.js'

/**
 * Restores an object permanently before the last deal that holds its only copy ends, or when the network has lost it,
 * so that no object is lost because a renewal is missing. Only deals that have delivered the object before count.
 * Throws what the restore throws; it is retried.
 * @param mayYetBeVerified whether the verification of a deal is under way: its outcome is awaited
 */
export async function rescue(
  parts: DealParts,
  record: DealRecord,
  mayYetBeVerified: (deal: DealRecord) => Promise<boolean> = async () => false,
): Promise<void> {
  const { host, options } = parts
  const { bucket, key, stamp } = record
  if (key === undefined || stamp === undefined) return
  const holding = await dealsHolding(parts, { bucket, key, stamp })
  const now = host.now()
  const lasting = holding.filter(
    (deal) => (endBegins(deal, options.rescueBeforeDays) ?? Number.POSITIVE_INFINITY) > now,
  )
  if (lasting.some(isVerified)) return
  const object = await host.own.store.find(bucket, key)
  const restore = object?.archive?.restore
  if (object?.stamp !== stamp || !object.cold || (restore && 'ongoing' in restore)) return
  for (const deal of lasting) if (await mayYetBeVerified(deal)) return
  const order = { days: 0, tier: 'Standard', description: '' } as const
  await host.own.archive.restore(bucket, key, order)
  host.log.warn(
    { bucket, key, deal: record.deal.dealCid },
    'restoring an object permanently: no deal holds its only copy for long',
  )
}

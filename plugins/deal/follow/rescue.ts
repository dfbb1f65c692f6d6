import { restoreStored } from '../../../src/operations/common/restore-stored.js'
import { ownOrigin } from '../../../src/registry/own-origin.js'
import { dealsHolding } from '../archive/kept-elsewhere.js'
import type { DealParts } from '../parts.js'
import type { DealRecord } from '../records/deal-record.js'
import { endBegins } from './schedule.js'

/**
 * Has an object brought back for good before the last deal that holds its only copy ends, or when the network has lost it: what nobody renews is not lost. Throws what
 * bringing it back throws; it is tried again.
 */
export async function rescue(parts: DealParts, record: DealRecord): Promise<void> {
  const { host, options } = parts
  const { bucket, key, stamp } = record
  if (key === undefined || stamp === undefined) return
  const holding = await dealsHolding(parts, { bucket, key, stamp })
  const now = host.now()
  if (holding.some((deal) => (endBegins(deal, options.rescueBeforeDays) ?? Number.POSITIVE_INFINITY) > now)) return
  const object = await host.own.store.find(bucket, key)
  const restore = object?.archive?.restore
  if (object?.stamp !== stamp || !object.cold || (restore && 'ongoing' in restore)) return
  const order = { days: 0, tier: 'Standard', description: '' } as const
  await restoreStored(host.own, bucket, key, order, { id: ownOrigin().requestId, remoteAddress: '' })
  host.log.warn(
    { bucket, key, deal: record.deal.dealCid },
    'an object is brought back for good: no deal holds its only copy for long',
  )
}

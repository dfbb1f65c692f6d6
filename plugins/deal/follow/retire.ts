import { dealsHolding } from '../archive/kept-elsewhere.js'
import { configurationOf } from '../configuration.js'
import type { DealParts } from '../parts.js'
import { type DealRecord, idOf, isDoubted, isVerified } from '../records/deal-record.js'

/**
 * Ends the monitoring and the renewals of a deal whose backup is older than the generations that its schedule keeps. A
 * deal that may be the last one for an object that is still there stays. Resolves true when the deal is retired.
 */
export async function retire(parts: DealParts, record: DealRecord): Promise<boolean> {
  const { host, deals } = parts
  if (!(await isOutdated(parts, record)) || (await isNeeded(parts, record))) return false
  await deals.setRetired(idOf(record), host.now())
  await deals.close(idOf(record))
  host.log.info({ bucket: record.bucket, deal: record.deal.dealCid }, 'a deal of an old backup is no longer monitored')
  return true
}

async function isOutdated({ host, schedules }: DealParts, { bucket, generation }: DealRecord): Promise<boolean> {
  if (!generation) return false
  const { schedule: id, due } = generation
  const keep = (await configurationOf(host, bucket))?.Schedules?.find(({ Id }) => Id === id)?.KeepGenerations
  if (keep === undefined) return false
  const complete = (await schedules.get(bucket, id))?.complete ?? []
  return complete.filter((other) => other > due).length >= keep
}

/** True unless the object was replaced or removed, or another deal certainly holds it. */
async function isNeeded(parts: DealParts, { bucket, key, stamp, deal }: DealRecord): Promise<boolean> {
  if (key === undefined || stamp === undefined) return false
  const object = await parts.host.own.store.find(bucket, key)
  if (object?.stamp !== stamp) return false
  const others = (await dealsHolding(parts, object)).filter((other) => other.deal.dealCid !== deal.dealCid)
  return !others.some((other) => (object.cold ? isVerified(other) : !isDoubted(other)))
}

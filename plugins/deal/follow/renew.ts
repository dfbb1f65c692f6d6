import { createHash } from 'node:crypto'
import { S3Error } from '../../../src/errors/s3-error.js'
import { configurationOf } from '../configuration.js'
import { OBJECT_DEAL, type ObjectDealInput } from '../jobs/inputs.js'
import type { DealParts } from '../parts.js'
import { type DealRecord, holds } from '../records/deal-record.js'
import { readTerms } from '../terms.js'

const DAY_MS = 86_400_000

/**
 * Has a deal made on the same terms when the last one that holds an object ends within the days that its bucket says, but not before half of its time is over: a deal shorter
 * than those days would be followed by another at once, and that one too. One deal follows a deal, however often it is looked at; one that was refused, or that came to nothing
 * after it was made, is tried again on another day.
 */
export async function renew(parts: DealParts, record: DealRecord): Promise<void> {
  const { host, deals, jobs } = parts
  const { bucket, key, stamp, live, renewedBy, deal, made } = record
  if (key === undefined || stamp === undefined || live?.expires === undefined || !holds(record)) return
  const days = (await configurationOf(host, bucket))?.RenewBeforeDays
  if (days === undefined) return
  const ahead = Math.min(days * DAY_MS, (live.expires - made) / 2)
  if (live.expires - host.now() > ahead) return
  const about = (await deals.of(bucket, key)).filter((other) => other.stamp === stamp)
  if (about.findLast(holds)?.deal.dealCid !== deal.dealCid) return
  if (renewedBy !== undefined && !isLost(about, renewedBy, host.now())) {
    await tryAgain(parts, renewedBy)
    return
  }
  const object = await host.own.store.find(bucket, key)
  if (object?.stamp !== stamp) return
  const input: ObjectDealInput = { bucket, key, stamp, terms: termsOf(record), cause: 'lifecycle' }
  const token = createHash('sha256')
    .update(renewedBy === undefined ? deal.dealCid : `${deal.dealCid}/${renewedBy}`)
    .digest('hex')
  const resource = `/${bucket}/${key}`
  const job = await jobs.create({ kind: OBJECT_DEAL, resource, input, accessKeyId: '', token, requestHash: token })
  await deals.setRenewedBy(deal.dealCid, job.id)
  host.log.info({ bucket, key, deal: deal.dealCid, job: job.id }, 'a deal that ends soon is renewed')
}

/** True when the deal of that job was made, and has held nothing for a day. */
function isLost(about: readonly DealRecord[], jobId: string, now: number): boolean {
  const follower = about.find((other) => other.jobId === jobId)
  return follower?.live !== undefined && !holds(follower) && now - follower.live.asked >= DAY_MS
}

async function tryAgain({ jobs, host }: DealParts, id: string): Promise<void> {
  const job = await jobs.get(id)
  if (job?.status !== 'Failed' || host.now() - job.updated < DAY_MS) return
  await jobs.retry(id).catch((error) => {
    // Somebody else was faster.
    if (!(error instanceof S3Error) || error.code !== 'InvalidRequest') throw error
  })
}

function termsOf({ deal }: DealRecord) {
  return readTerms({
    MinerId: deal.minerId,
    Price: deal.price,
    DurationEpochs: deal.duration,
    VerifiedDeal: deal.verifiedDeal,
    FastRetrieval: deal.fastRetrieval,
  })
}

import { createHash } from 'node:crypto'
import { S3Error, type StoredObject } from 'dealgate'
import { configurationOf } from '../configuration.js'
import type { AgreedTerms, DealDeps } from '../deps.js'
import { OBJECT_DEAL, type ObjectDealInput } from '../jobs/inputs.js'
import { type DealRecord, holds, idOf, isDoubted } from '../records/deal-records.js'
import { payingAccount } from '../subject.js'
import { readTerms } from '../terms/terms.js'

const DAY_MS = 86_400_000

/**
 * Renews the last deal that holds an object when it ends within `RenewBeforeDays` of the bucket, but not before half of
 * its life is over: otherwise a deal shorter than those days would be renewed at once, again and again. A deal is
 * renewed once, however often it is examined. A renewal that was refused or lost is retried on another day.
 */
export async function renew(deps: DealDeps, record: DealRecord): Promise<void> {
  const { host, deals, jobs } = deps
  const { bucket, key, stamp, live, renewedBy, deal, made, generation } = record
  if (key === undefined || stamp === undefined || live?.expires === undefined || !holds(record)) return
  const days = (await configurationOf(host, bucket))?.RenewBeforeDays
  if (days === undefined) return
  const ahead = Math.min(days * DAY_MS, (live.expires - made) / 2)
  if (live.expires - host.now() > ahead) return
  const object = await host.own.store.find(bucket, key)
  // The same content may have a header for newer keys by now: that is renewed.
  const same = new Set(object && [object.stamp, ...(object.archive?.earlierStamps ?? [])])
  if (!object || !same.has(stamp)) return
  const about = (await deals.of(bucket, key)).filter((other) => other.stamp !== undefined && same.has(other.stamp))
  // A deal that did not deliver the object is no renewal.
  const counts = (other: DealRecord) =>
    other.deal.dealCid === deal.dealCid || (holds(other) && !isDoubted(other) && other.retired === undefined)
  if (about.findLast(counts)?.deal.dealCid !== deal.dealCid) return
  if (renewedBy !== undefined && record.taskUuid === undefined && !isLost(about, renewedBy, host.now())) {
    await tryAgain(deps, renewedBy)
    return
  }
  if (record.taskUuid !== undefined) return renewOffline(deps, record, object)
  // The server pays from its own account, and only for its own buckets.
  await host.own.checks.requireOwner(bucket)
  const agreed = await termsToRenewOn(deps, record, object)
  const input: ObjectDealInput = {
    bucket,
    key,
    stamp: object.stamp,
    ...agreed,
    cause: 'lifecycle',
    ...(generation && { generation }),
  }
  const token = createHash('sha256')
    .update(renewedBy === undefined ? deal.dealCid : `${deal.dealCid}/${renewedBy}`)
    .digest('hex')
  const resource = `/${bucket}/${key}`
  const job = await jobs.create({ kind: OBJECT_DEAL, resource, input, accessKeyId: '', token, requestHash: token })
  await deals.setRenewedBy(deal.dealCid, job.id)
  host.log.info({ bucket, key, deal: deal.dealCid, job: job.id }, 'renewing a deal that ends soon')
}

/** The next offline deal of the bucket holds the object, too. */
async function renewOffline({ host, deals, marks }: DealDeps, record: DealRecord, object: StoredObject): Promise<void> {
  const { bucket, key, stamp, size } = object
  if (record.renewedBy !== undefined) return
  await marks.set({ bucket, key, since: host.now(), object: { stamp, size } })
  await deals.setRenewedBy(idOf(record), 'offline')
}

/**
 * The terms of the deal. A deal that another account paid for, such as one for an object that it stored here, is
 * renewed on the terms of the bucket: the server does not pay that account's price.
 */
async function termsToRenewOn(deps: DealDeps, record: DealRecord, object: StoredObject): Promise<AgreedTerms> {
  const { own } = deps.host
  if (record.account === payingAccount(own.caller))
    return { terms: termsOf(record), ...(record.priceConfirmed && { priceConfirmed: true }) }
  const storageClass = object.archive?.storageClass
  return deps.termsFor(own, record.bucket, { object, ...(storageClass !== undefined && { storageClass }) })
}

/** True when the deal of that job was made, and has held nothing for a day. */
function isLost(about: readonly DealRecord[], jobId: string, now: number): boolean {
  const follower = about.find((other) => other.jobId === jobId)
  return follower?.live !== undefined && !holds(follower) && now - follower.live.asked >= DAY_MS
}

async function tryAgain({ jobs, host }: DealDeps, id: string): Promise<void> {
  const job = await jobs.get(id)
  if (job?.status !== 'Failed' || host.now() - job.updated < DAY_MS) return
  await jobs.retry(id).catch((error) => {
    // Another process or an operator has retried the job.
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

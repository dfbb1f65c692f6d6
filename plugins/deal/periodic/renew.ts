import { createHash } from 'node:crypto'
import { type Job, S3Error, type StoredObject } from 'dealgate/plugin'
import { configurationOf } from '../configuration.js'
import type { AgreedTerms, DealDeps } from '../deps.js'
import { OBJECT_DEAL, type ObjectDealInput } from '../jobs/inputs.js'
import { type DealRecord, holds, idOf, isDoubted } from '../records/deal-record.js'
import { isCurrent } from '../records/held-deals.js'
import { payingAccount } from '../subject.js'
import { readTerms } from '../terms/terms.js'
import { LOCK_DAYS, lockBeyond, noteRenewal } from './lock-renewals.js'
import { restoreForGood } from './verify.js'

const DAY_MS = 86_400_000

/**
 * Renews the last deal that holds an object when it ends within `RenewBeforeDays` of the bucket; and, whatever the
 * bucket says, the last deal of a version whose bytes are in deals alone and which is locked beyond its end. Not before
 * half of its life is over: otherwise a deal shorter than those days would be renewed at once, again and again. A deal
 * is renewed once, however often it is examined. A renewal that was refused or lost is retried on another day. A
 * locked version that only an offline deal has, and no other one would have, is restored permanently at once.
 */
export async function renew(deps: DealDeps, record: DealRecord): Promise<void> {
  const { host } = deps
  const { bucket, key, revision, live, made } = record
  if (key === undefined || revision === undefined || live?.expires === undefined || !holds(record)) return
  const left = live.expires - host.now()
  const { expires } = live
  const isDue = (days: number) => left <= Math.min(days * DAY_MS, (expires - made) / 2)
  const days = (await configurationOf(host, bucket))?.RenewBeforeDays
  const byBucket = days !== undefined && isDue(days)
  const byLock = isDue(Math.max(days ?? 0, LOCK_DAYS)) && (await host.own.gateway.features()).locks
  if (!byBucket && !byLock) return
  const object = await objectOf(deps, { bucket, key, revision })
  const lock = object?.cold ? lockBeyond(object, expires) : undefined
  if (!object || !(await isLast(deps, record, object))) return noteRenewal(deps, record, undefined)
  if (!byBucket && lock === undefined) return noteRenewal(deps, record, undefined)
  if (record.taskUuid !== undefined && !(await mayBeHeldOffline(deps, object))) {
    if (lock === undefined) return
    await noteRenewal(deps, record, { until: lock, error: new S3Error('InvalidObjectState', { message: NOT_CURRENT }) })
    return restoreForGood(deps, object, record)
  }
  if (lock === undefined) return void (await renewLast(deps, record, object))
  try {
    const job = await renewLast(deps, record, object, lock)
    await noteRenewal(deps, record, { until: lock, job })
  } catch (error) {
    if (error instanceof S3Error) await noteRenewal(deps, record, { until: lock, error })
    throw error
  }
}

/**
 * The version that the deal holds. One that was replaced by the same content with a header for newer keys is not
 * renewed itself, unless its bytes are nowhere else.
 */
async function objectOf(
  { host }: DealDeps,
  { bucket, key, revision }: { readonly bucket: string; readonly key: string; readonly revision: string },
): Promise<StoredObject | undefined> {
  const { store } = host.own
  const own = await store.findRevision(bucket, key, revision)
  if (own?.cold) return own
  const current = await store.find(bucket, key)
  return current?.archive?.earlierRevisions?.includes(revision) ? current : own
}

function revisionsOf({ revision, archive }: StoredObject): readonly string[] {
  return [...(archive?.earlierRevisions ?? []), revision]
}

async function dealsAbout({ deals }: DealDeps, object: StoredObject): Promise<readonly DealRecord[]> {
  const { bucket, key } = object
  const all = await Promise.all(revisionsOf(object).map((revision) => deals.ofVersion({ bucket, key, revision })))
  return all.flat().sort((one, other) => one.made - other.made)
}

/** A deal that did not deliver the object is no renewal. */
async function isLast(deps: DealDeps, { deal }: DealRecord, object: StoredObject): Promise<boolean> {
  const counts = (other: DealRecord) =>
    other.deal.dealCid === deal.dealCid || (holds(other) && !isDoubted(other) && other.retired === undefined)
  return (await dealsAbout(deps, object)).findLast(counts)?.deal.dealCid === deal.dealCid
}

/**
 * Resolves with the job of the renewal; undefined for that of an offline deal.
 * @param lock see ObjectDealInput.lockedUntil
 */
async function renewLast(
  deps: DealDeps,
  record: DealRecord,
  object: StoredObject,
  lock?: number | null,
): Promise<Job | undefined> {
  const { host, deals, jobs } = deps
  const { bucket, key } = object
  const { deal, renewedBy, generation } = record
  if (record.taskUuid !== undefined) {
    await renewOffline(deps, record, object)
    return undefined
  }
  if (renewedBy !== undefined && !isLost(await dealsAbout(deps, object), renewedBy, host.now()))
    return tryAgain(deps, renewedBy)
  // The server pays from its own account, and only for its own buckets.
  await host.own.checks.requireOwner(bucket)
  const agreed = await termsToRenewOn(deps, record, object)
  const input: ObjectDealInput = {
    bucket,
    key,
    stamp: object.revision,
    ...agreed,
    cause: 'lifecycle',
    ...(generation && { generation }),
    ...(lock !== undefined && { lockedUntil: lock }),
  }
  const token = createHash('sha256')
    .update(renewedBy === undefined ? deal.dealCid : `${deal.dealCid}/${renewedBy}`)
    .digest('hex')
  const resource = `/${bucket}/${key}`
  const job = await jobs.create({ kind: OBJECT_DEAL, resource, input, accessKeyId: '', token, requestHash: token })
  await deals.setRenewedBy(deal.dealCid, job.id)
  host.log.info({ bucket, key, deal: deal.dealCid, job: job.id }, 'renewing a deal that ends soon')
  return job
}

const NOT_CURRENT =
  'An offline deal has the current objects of its bucket alone: no other follows that of this version.'

/** False for a version that is not current, unless an offline deal that was ordered before may hold it. */
async function mayBeHeldOffline(deps: DealDeps, object: StoredObject): Promise<boolean> {
  return (await isCurrent(deps, object)) || (await deps.marks.get(object))?.jobId !== undefined
}

/** The next offline deal of the bucket holds the object, too. */
async function renewOffline({ host, deals, marks }: DealDeps, record: DealRecord, object: StoredObject): Promise<void> {
  const { bucket, key, revision, size } = object
  if (record.renewedBy !== undefined) return
  await marks.set({ bucket, key, since: host.now(), object: { revision, size } })
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

async function tryAgain({ jobs, host }: DealDeps, id: string): Promise<Job | undefined> {
  const job = await jobs.get(id)
  if (job?.status !== 'Failed' || host.now() - job.updated < DAY_MS) return job
  await jobs.retry(id).catch((error) => {
    // Another process or an operator has retried the job.
    if (!(error instanceof S3Error) || error.code !== 'InvalidRequest') throw error
  })
  return job
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

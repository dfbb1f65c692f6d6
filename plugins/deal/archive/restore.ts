import { setTimeout as sleep } from 'node:timers/promises'
import {
  type Archive,
  type Context,
  type Job,
  type JobProgress,
  type RestoreOrder,
  type RestoreOutcome,
  type RunningJob,
  S3Error,
  type StoredObject,
} from 'dealgate/plugin'
import { isEvicted } from '../configuration.js'
import type { DealDeps } from '../deps.js'
import type { ObjectDealInput } from '../jobs/inputs.js'
import type { Version } from '../records/deal-records.js'
import { everyDealHolding } from '../records/held-deals.js'
import { versionNaming } from '../records/named-version.js'
import { isPassing } from '../records/sequence.js'
import { payingAccount } from '../subject.js'
import { askBack } from './copy-calls.js'

/**
 * Implements RestoreObject. Throws GlacierExpeditedRetrievalNotAvailable when no deal that holds the object promises
 * fast retrieval, NoSuchDeal for a deal that does not hold it, RestoreAlreadyInProgress, NoSuchKey.
 */
export async function restore(
  deps: DealDeps,
  object: StoredObject,
  order: RestoreOrder,
  context: Context,
): Promise<RestoreOutcome> {
  return object.cold ? begin(deps, object, order, context) : renew(deps, object, order, context)
}

/** Prolongs the restore of an object with a local copy: the copy stays until a new date, counted from now. */
async function renew(
  { host, copies, events }: DealDeps,
  object: StoredObject,
  order: RestoreOrder,
  context: Context,
): Promise<RestoreOutcome> {
  const { bucket, key, revision } = object
  const until = expiryOf(object, order.days, host.now(), context)
  if (!(await context.store.annotate(bucket, key, revision, (archive) => ({ ...archive, restore: { until } }))))
    throw new S3Error('NoSuchKey', { fields: { Key: key } })
  // The date in the object's record decides; the plan only says when to look at it.
  if (until !== null) await copies.set({ bucket, key, revision, due: until })
  const { caller } = context
  await events.add(object, {
    ...{ id: `${revision}/${until}/RestoreProlonged`, event: 'RestoreProlonged', revision, until },
    ...{ account: payingAccount(caller), by: caller?.identity.accessKeyId ?? '' },
  })
  return { status: 200 }
}

/** Starts a restore. The job is created, held, before the object is marked as restoring, and starts only then. */
async function begin(
  deps: DealDeps,
  object: StoredObject,
  { days, tier, description }: RestoreOrder,
  context: Context,
): Promise<RestoreOutcome> {
  const { bucket, key, revision } = object
  const dealCid = /(?:^|\s)deal=(\S+)/.exec(description)?.[1]
  await refuseUnavailable(deps, object, tier, dealCid)
  const input: RestoreInput = { bucket, key, stamp: revision, days, tier, ...(dealCid !== undefined && { dealCid }) }
  const accessKeyId = context.caller?.identity.accessKeyId ?? ''
  const job = await context.jobs.create({
    kind: RESTORE,
    resource: `/${bucket}/${key}`,
    input,
    accessKeyId,
    held: true,
  })
  try {
    if (!(await context.store.annotate(bucket, key, revision, onItsWay)))
      throw new S3Error('NoSuchKey', { fields: { Key: key } })
  } catch (error) {
    // The outcome of the write is unknown: the object's record will tell.
    if (isPassing(error)) await deps.jobs.leave(job.id)
    else await deps.jobs.drop(job.id).catch(() => deps.jobs.leave(job.id))
    throw error
  }
  try {
    await deps.copies.set({ bucket, key, revision, restoring: job.id })
    await deps.jobs.release(job.id)
  } catch (err) {
    // The object is marked as restoring and the job is on record: it starts as soon as that can be written.
    context.log.warn({ err, bucket, key, job: job.id }, 'the job that restores an object starts later')
    await deps.jobs.leave(job.id)
  }
  return { status: 202, headers: { 'x-dealgate-job-id': job.id } }
}

function onItsWay(archive: Archive | undefined): Archive {
  if (archive?.restore && 'ongoing' in archive.restore) throw new S3Error('RestoreAlreadyInProgress')
  return { ...archive, restore: { ongoing: true } }
}

async function refuseUnavailable(
  deps: DealDeps,
  object: StoredObject,
  tier: RestoreOrder['tier'],
  dealCid: string | undefined,
): Promise<void> {
  if (dealCid === undefined && tier !== 'Expedited') return
  const holding = await everyDealHolding(deps, object)
  const asked = dealCid === undefined ? holding : holding.filter(({ deal }) => deal.dealCid === dealCid)
  if (asked.length === 0 && dealCid !== undefined)
    throw new S3Error('NoSuchDeal', { message: 'The deal that the description names does not hold this object.' })
  if (tier === 'Expedited' && !asked.some(({ deal }) => deal.fastRetrieval.toLowerCase() === 'true'))
    throw new S3Error('GlacierExpeditedRetrievalNotAvailable', {
      message: 'No deal that holds the object promises fast retrieval. Use the tier Standard or Bulk.',
    })
}

interface BringBackOptions {
  /** Deal to retrieve the bytes from. Default: any that delivers. */
  readonly dealCid?: string
  readonly signal: AbortSignal
  report?(progress: Partial<JobProgress>): void
}

const PAUSE_MS = 1000

/**
 * Asks the gateway to retrieve the bytes of a version from a deal that holds it. Resolves with the object once the
 * gateway has a local copy. May take hours.
 * @throws S3Error NoSuchKey, PreconditionFailed when the object is replaced meanwhile, InvalidObjectState when no deal
 * delivers it; what Gateway.call throws
 */
export async function bringBack(
  context: Pick<Context, 'gateway' | 'store' | 'log'>,
  { bucket, key, revision }: Version,
  { dealCid, signal, report }: BringBackOptions,
): Promise<StoredObject> {
  for (let said: string | undefined; ; ) {
    signal.throwIfAborted()
    const object = await context.store.findToWrite(bucket, key, { revision })
    if (!object) throw await gone(context, bucket, key)
    const { size } = object
    report?.({ bytes: { done: object.cold ? 0 : size, total: size } })
    if (!object.cold) return object
    if (said !== undefined)
      throw new S3Error('UpstreamBadResponse', {
        message: 'The object gateway reported the restore as done but holds no local copy.',
      })
    const answer = await askBack(context, { bucket, key, revision, dealCid, signal })
    if (answer.outcome === 'refused')
      throw new S3Error('InvalidObjectState', { message: `No deal delivered the object. ${answer.message}` })
    // A retrieval that takes longer than the timeout of the call continues: the next call joins it.
    if (answer.outcome === 'here') said = answer.message
    else await sleep(PAUSE_MS, undefined, { signal, ref: false })
  }
}

/** The error for a version that was there before. */
async function gone({ store }: Pick<Context, 'store'>, bucket: string, key: string): Promise<S3Error> {
  if (!(await store.findToWrite(bucket, key))) return new S3Error('NoSuchKey', { fields: { Key: key } })
  return new S3Error('PreconditionFailed', { message: 'The object was replaced while it was being restored.' })
}

type HeldJob = Pick<Job<ObjectDealInput>, 'id' | 'created' | 'input'>

/**
 * Starts the held job if the object names it, which is so once the object is stored, and drops it otherwise, also when
 * the object was replaced at once. Resolves true when the job starts. If that cannot be decided now, it throws, and the
 * job's kind decides later.
 */
export async function releaseOrDrop(deps: DealDeps, context: Context, job: HeldJob): Promise<boolean> {
  try {
    const object = await mayBegin(deps, context, job)
    if (object) await deps.jobs.release<ObjectDealInput>(job.id, { ...job.input, ...object })
    else await deps.jobs.drop(job.id)
    return object !== undefined
  } catch (error) {
    await deps.jobs.leave(job.id)
    throw error
  }
}

/** Implements JobKind.held. */
export async function decide(
  deps: DealDeps,
  { job, context }: RunningJob<ObjectDealInput>,
): Promise<'release' | 'drop'> {
  return (await mayBegin(deps, context, job)) ? 'release' : 'drop'
}

/**
 * The object that the job concerns, once the job may start; undefined when the job is to be dropped, with its reserved
 * cost.
 */
async function mayBegin(
  deps: DealDeps,
  context: Context,
  job: HeldJob,
): Promise<Pick<ObjectDealInput, 'stamp' | 'etag'> | undefined> {
  const object = await named(deps, context, job)
  if (object) await remember(deps, context, object)
  else await deps.spending.release(job.id)
  return object && { stamp: object.revision, etag: object.etag }
}

/** Throws PreconditionFailed unless the object names this job. */
export function mustName({ job, input }: RunningJob<ObjectDealInput>, { archive }: StoredObject): void {
  if (input.cause !== 'class' || archive?.jobId === job.id) return
  throw new S3Error('PreconditionFailed', {
    message: 'The object was replaced before its deal was made. The new object has a deal of its own, or none.',
  })
}

/** The version that names the job: the one that the job is about, if that is known. */
export async function named(
  deps: Pick<DealDeps, 'host'>,
  context: Pick<Context, 'store' | 'gateway'>,
  job: HeldJob,
): Promise<StoredObject | undefined> {
  const { bucket, key, stamp: revision } = job.input
  if (revision === undefined) return versionNaming(deps, context, { bucket, key }, job)
  const object = await context.store.findToWrite(bucket, key, { revision })
  return object?.archive?.jobId === job.id ? object : undefined
}

/** Schedules the copy of an object in GLACIER for eviction. The server evicts copies in its own account only. */
export async function remember(
  { host, copies }: DealDeps,
  context: Pick<Context, 'caller'>,
  { bucket, key, revision, archive }: Pick<StoredObject, 'bucket' | 'key' | 'revision' | 'archive'>,
): Promise<void> {
  if (!isEvicted(archive?.storageClass) || context.caller?.identity.account) return
  await copies.set({ bucket, key, revision, due: host.now() })
}

/**
 * When a copy that is restored at `now` expires, ms since 1970: the midnight UTC after `days` days, as in S3. Null for
 * a copy that stays: when no days are given, in gateway accounts in which this server evicts nothing, and for an object
 * outside GLACIER and DEEP_ARCHIVE, whose copy another program evicted.
 */
export function expiryOf(
  { archive }: Pick<StoredObject, 'archive'>,
  days: number,
  now: number,
  { caller, archive: archives }: Pick<Context, 'caller' | 'archive'>,
): number | null {
  const stays = days === 0 || !isEvicted(archive?.storageClass) || caller?.identity.account !== undefined
  return stays ? null : archives.expiry(now, days)
}

/** Name of the job that restores an object. */
export const RESTORE = 'deal:RestoreObject'

export interface RestoreInput extends Pick<RestoreOrder, 'days' | 'tier'> {
  readonly bucket: string
  readonly key: string
  /** Revision of the object, under the name that stored jobs have. */
  readonly stamp: string
  /** CID of the deal to retrieve the bytes from. */
  readonly dealCid?: string
}

export interface RestoreResult {
  readonly Bucket: string
  readonly Key: string
  /** RFC 3339; absent when the copy stays. */
  readonly RestoreExpiryDate?: string
}

import { createHash } from 'node:crypto'
import { type JobKind, type RunningJob, S3Error, type StoredObject } from 'dealgate/plugin'
import { askToVerify } from '../archive/copy-calls.js'
import type { DealDeps } from '../deps.js'
import { type DealRecord, endBegins, idOf, isVerified } from '../records/deal-record.js'
import { dealsHolding } from '../records/held-deals.js'
import { bringingBack, runPatiently } from '../records/sequence.js'

/** Name of the job that retrieves an object from a deal and compares it. */
export const VERIFY = 'deal:VerifyDeal'

interface VerifyInput {
  readonly bucket: string
  readonly key: string
  /** Revision of the object, under the name that stored jobs have. */
  readonly stamp: string
  readonly dealCid: string
  /** See DealRecord. */
  readonly id?: string
}

interface VerifyResult {
  readonly DealCid: string
}

/** Pause before a deal that did not deliver the object is verified again, ms. */
const AGAIN_MS = 86_400_000
/** Most verifications at the same time in this process: each reads a whole object from a provider. */
const MAX_CONCURRENCY = 2

/** Verifies deals before an object is left to them alone. */
export function verifications(deps: DealDeps): JobKind<VerifyInput, VerifyResult> {
  return {
    name: VERIFY,
    concurrency: MAX_CONCURRENCY,
    run: (job) =>
      runPatiently(job, () => run(deps, job), {
        now: () => deps.host.now(),
        times: bringingBack,
        failed: () => doubt(deps, job.input),
      }),
  }
}

async function run(deps: DealDeps, job: RunningJob<VerifyInput>): Promise<VerifyResult> {
  const { bucket, key, stamp: revision, dealCid, id = dealCid } = job.input
  job.report({ phase: 'Verifying' })
  const why = await askToVerify(job.context, { bucket, key, revision, dealCid, signal: job.signal })
  if (why !== undefined)
    throw new S3Error('InvalidObjectState', { message: `The deal ${dealCid} did not deliver the object. ${why}` })
  await deps.deals.setVerified(id, deps.host.now())
  return { DealCid: dealCid }
}

/** Marks the deal as doubted, and restores an object that was left to it, unless another deal has delivered it. */
async function doubt(deps: DealDeps, { dealCid, id = dealCid }: VerifyInput): Promise<void> {
  const { host, deals } = deps
  host.log.warn({ deal: dealCid }, 'a deal does not deliver its object, and no longer counts')
  const record = await deals.setDoubted(id, host.now())
  if (record) await rescue(deps, record)
}

/**
 * Starts the verification of an active deal on which something depends: the object has no local copy, or other deals
 * for it may end. Resolves true while the deal may still prove good.
 */
export async function verify(deps: DealDeps, record: DealRecord): Promise<boolean> {
  const { host, deals, jobs } = deps
  const { bucket, key, revision, live, verified, doubted } = record
  if (key === undefined || revision === undefined || verified !== undefined) return false
  if (live?.state !== 'StorageDealActive' || (doubted !== undefined && host.now() - doubted < AGAIN_MS)) return false
  if (!(await host.own.gateway.features()).dealVerification) return false
  const object = await host.own.store.findRevision(bucket, key, revision)
  if (!object) return false
  if (!object.cold && (await deals.ofVersion(object)).length < 2) return false
  const { dealCid } = record.deal
  const token = createHash('sha256')
    .update(`verify/${idOf(record)}/${doubted ?? ''}`)
    .digest('hex')
  const input: VerifyInput = {
    bucket,
    key,
    stamp: revision,
    dealCid,
    ...(record.id !== undefined && { id: record.id }),
  }
  const job = await jobs.create({
    ...{ kind: VERIFY, resource: `/${bucket}/${key}`, input, accessKeyId: '', token, requestHash: token },
  })
  return job.status === 'New' || job.status === 'Active'
}

/**
 * Restores an object permanently before the last deal that holds its only copy ends, or when the network has lost it,
 * so that no object is lost because a renewal is missing. Only deals that have delivered the object before count.
 * Throws what the restore throws; it is retried.
 * @param mayYetBeVerified whether the verification of a deal is under way: its outcome is awaited
 */
export async function rescue(
  deps: DealDeps,
  record: DealRecord,
  mayYetBeVerified: (deal: DealRecord) => Promise<boolean> = async () => false,
): Promise<void> {
  const { host, options } = deps
  const { bucket, key, revision } = record
  if (key === undefined || revision === undefined) return
  const holding = await dealsHolding(deps, { bucket, key, revision })
  const now = host.now()
  const lasting = holding.filter(
    (deal) => (endBegins(deal, options.rescueBeforeDays) ?? Number.POSITIVE_INFINITY) > now,
  )
  if (lasting.some(isVerified)) return
  const object = await host.own.store.findRevision(bucket, key, revision)
  if (!object || !needsRestore(object)) return
  for (const deal of lasting) if (await mayYetBeVerified(deal)) return
  await restoreForGood(deps, object, record)
}

function needsRestore({ cold, archive }: StoredObject): boolean {
  return cold === true && !(archive?.restore && 'ongoing' in archive.restore)
}

/** Restores an object permanently, unless it has a local copy or that is on its way. */
export async function restoreForGood({ host }: DealDeps, object: StoredObject, { deal }: DealRecord): Promise<void> {
  if (!needsRestore(object)) return
  const { bucket, key, revision } = object
  const order = { days: 0, tier: 'Standard', description: '' } as const
  await host.own.archive.restore(bucket, key, order, undefined, { revision })
  host.log.warn(
    { bucket, key, deal: deal.dealCid },
    'restoring an object permanently: no deal holds its only copy for long',
  )
}

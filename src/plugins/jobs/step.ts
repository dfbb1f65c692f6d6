import { setTimeout as sleep } from 'node:timers/promises'
import { pauseAfter } from '../../../common/backoff.js'
import { OutcomeUnknown, S3Error } from '../../../common/errors/s3-error.js'
import type { Logger } from '../../../common/log.js'
import { HOUR_MS } from '../../../common/time.js'
import type { Context, JobKind } from '../../api/context.js'
import type { Job, PutOff } from '../../api/jobs.js'
import type { Lease } from '../../api/locks.js'
import type { JobStore } from './job-store.js'
import { type Interruption, LiveJob, Retry } from './live-job.js'
import { ended, failureOf, hasEnded, type JobRecord, plain, released, renewed, withStatus } from './record.js'
import { attended, type WorkTimes } from './waiters.js'

export interface StepDeps {
  readonly store: JobStore
  readonly log: Logger
  readonly now: () => number
  /** Resolves undefined when another process has the job. */
  readonly acquireLease: (id: string) => Promise<Lease | undefined>
  /** Context of the identity that created a job; undefined if it no longer exists. */
  readonly contextOf: (owner: Pick<Job, 'accessKeyId' | 'session'>) => Promise<Context | undefined>
  readonly stopping: AbortSignal
  readonly workTimes: WorkTimes
}

/**
 * What to do with a job after a step. `finished`: the job has ended or is gone. `elsewhere`: another process has it.
 * `againIn`: delay before the next step, ms.
 */
export type NextStep = 'finished' | 'elsewhere' | { readonly againIn: number }

export interface StepOptions {
  readonly onLive: (live: LiveJob) => void
  /** True for the first step in this process: then the outcome of an `Unknown` job is looked up at once. */
  readonly first: boolean
}

// biome-ignore lint/suspicious/noExplicitAny: each kind has an input of its own, which the frame only carries
export type AnyKind = JobKind<any, unknown>

/** Longest pause between attempts to find out the outcome of a job, ms. Pauses double from ASK_FIRST_MS. */
const MAX_ASK_MS = HOUR_MS

/** The same for attempts to decide whether a held job starts. */
const DECIDE_LAST_MS = 5 * 60_000

/** Delay before a job whose step failed is tried again, ms. */
const TROUBLE_MS = 5_000
const WRITE_BACKOFF = { firstMs: 100, longestMs: 30_000 }

/** Takes a job one step further: runs it, or finds out its outcome. Never rejects. */
export async function runStep(
  deps: StepDeps,
  kind: AnyKind,
  id: string,
  { onLive, first }: StepOptions,
): Promise<NextStep> {
  let lease: Lease | undefined
  try {
    lease = await deps.acquireLease(id)
    if (!lease) return 'elsewhere'
    return await leasedStep(deps, kind, id, lease, { onLive, first })
  } catch (err) {
    if (!deps.stopping.aborted) deps.log.error({ err, job: id }, 'a job could not be started and will be retried')
    return { againIn: TROUBLE_MS }
  } finally {
    await lease?.release()
  }
}

async function leasedStep(
  deps: StepDeps,
  kind: AnyKind,
  id: string,
  lease: Lease,
  { onLive, first }: StepOptions,
): Promise<NextStep> {
  const { store, now } = deps
  const record = await store.read(id)
  if (!record || hasEnded(record.job.status)) {
    return (await store.mend(id)) || !store.index.get(id) ? 'finished' : { againIn: TROUBLE_MS }
  }
  const unknown = record.job.status === 'Unknown' || record.committed
  if (record.job.status === 'Cancelling' && !unknown) {
    await store.change(id, (present) => ended(present, { status: 'Cancelled' }))
    return 'finished'
  }
  if (record.notBefore > now() && !((unknown || record.held) && first)) return { againIn: record.notBefore - now() }
  const context = await deps.contextOf(record.job)
  if (!context) return unknown ? askLater(deps, id) : withoutIdentity(store, id)
  const log = deps.log.child({ job: id, operation: record.job.operation })
  const live = await new LiveJob(record, { store, lease, context, log, now }).open()
  onLive(live)
  try {
    if (record.held) return await decide(deps, kind, live)
    return await (unknown ? reconcile(deps, kind, live) : run(deps, kind, live))
  } finally {
    await live.close()
  }
}

async function withoutIdentity(store: JobStore, id: string): Promise<NextStep> {
  const message = 'The access key that created this job no longer exists.'
  const failure = failureOf(new S3Error('AccessDenied', { message }))
  await store.change(id, (present) => ended(present, { status: 'Failed', failure }))
  return 'finished'
}

async function run(deps: StepDeps, kind: AnyKind, live: LiveJob): Promise<NextStep> {
  const { store, now } = deps
  const { id } = live.job
  const begun = await store.change(id, (present) => (mayRun(present) ? withStatus(present, 'Active') : present))
  if (begun.job.status !== 'Active') return { againIn: 0 }
  let outcome: ((record: JobRecord) => JobRecord) | undefined
  try {
    live.signal.throwIfAborted()
    const result = plain(await attended(live, deps.workTimes, 'logged', () => kind.run(live)))
    outcome = (present) => ended(present, { status: 'Complete', result })
  } catch (thrown) {
    live.checkClaim()
    const { committed, interruption } = live
    outcome = afterThrow({ thrown, committed, interruption, now: now() })
    logError(live, thrown)
  }
  await live.close()
  if (!outcome) return 'elsewhere'
  const written = await writeOutcome(deps, live, outcome)
  if (hasEnded(written.job.status)) return 'finished'
  return { againIn: Math.max(0, written.notBefore - now()) }
}

function mayRun({ job, held, committed }: JobRecord): boolean {
  return !held && !committed && (job.status === 'New' || job.status === 'Active')
}

function logError(live: LiveJob, err: unknown): void {
  if (live.interruption) return
  if (err instanceof Retry) live.note(`Retry in ${err.afterMs} ms: ${err.message}`)
  else if (err instanceof S3Error) live.note(`${err.code}: ${err.message}`)
  const expected = err instanceof Retry || (err instanceof S3Error && err.status < 500)
  live.log[expected ? 'info' : 'error']({ err }, expected ? 'a job ended early' : 'a job failed')
}

/** Decides a held job that no process holds any more: its process has died, or has left the decision to the kind. */
async function decide(deps: StepDeps, kind: AnyKind, live: LiveJob): Promise<NextStep> {
  const { store } = deps
  const { id } = live.job
  let decision: 'release' | 'drop' = 'drop'
  try {
    if (kind.held) decision = await attended(live, deps.workTimes, 'ends', async () => kind.held?.(live) ?? 'drop')
  } catch (err) {
    if (!deps.stopping.aborted) live.log.warn({ err }, 'could not decide yet whether a held job starts')
    return askLater(deps, id, DECIDE_LAST_MS)
  }
  if (decision === 'drop') {
    await store.remove(id, (present) => present.held)
    return 'finished'
  }
  await store.change(id, (present) => released(present))
  return { againIn: 0 }
}

async function reconcile(deps: StepDeps, kind: AnyKind, live: LiveJob): Promise<NextStep> {
  const { id } = live.job
  await deps.store.change(id, (present) =>
    present.job.status === 'Unknown' ? present : { ...withStatus(present, 'Unknown'), committed: true },
  )
  let answer: Awaited<ReturnType<NonNullable<AnyKind['reconcile']>>>
  try {
    answer = await attended(live, deps.workTimes, 'ends', async () => kind.reconcile?.(live))
    if (answer !== undefined && answer !== 'not-done') answer = { done: plain(answer.done) }
  } catch (err) {
    if (!live.interruption) live.log.warn({ err }, 'could not find out the outcome of a job yet')
  }
  await live.close()
  if (answer === undefined) return askLater(deps, id)
  const known = answer
  const written = await writeOutcome(deps, live, (present) => {
    if (present.job.status !== 'Unknown') return present
    return known === 'not-done' ? renewed(present) : ended(present, { status: 'Complete', result: known.done })
  })
  return hasEnded(written.job.status) ? 'finished' : { againIn: 0 }
}

async function askLater({ store, now }: StepDeps, id: string, longestMs = MAX_ASK_MS): Promise<NextStep> {
  const written = await store.change(id, (present) => {
    const open = present.job.status === 'Unknown' || (present.held && present.job.status === 'New')
    if (!open) return present
    const pause = pauseAfter(present.asked + 1, { firstMs: ASK_FIRST_MS, longestMs })
    return { ...present, asked: Math.min(present.asked + 1, 30), notBefore: now() + pause }
  })
  return hasEnded(written.job.status) ? 'finished' : { againIn: Math.max(0, written.notBefore - now()) }
}

/** Writes the outcome of a job, and retries while the records cannot be written, because only this process knows it. */
async function writeOutcome(
  { store, stopping }: StepDeps,
  live: LiveJob,
  to: (record: JobRecord) => JobRecord,
): Promise<JobRecord> {
  for (let failures = 1; ; failures++) {
    try {
      return await store.change(live.job.id, (present) =>
        hasEnded(present.job.status) ? present : to(live.merged(present)),
      )
    } catch (err) {
      if (stopping.aborted || (err instanceof S3Error && err.code === 'NoSuchJob')) throw err
      live.log.error({ err }, 'could not write the outcome of a job yet')
      await sleep(pauseAfter(failures, WRITE_BACKOFF), undefined, { signal: stopping, ref: false })
    }
  }
}

/** Delay before the first attempt to find out the outcome of a job, ms: what was sent may still be in progress. */
const ASK_FIRST_MS = 5_000

interface Thrown {
  readonly thrown: unknown
  readonly committed: boolean
  readonly interruption: Interruption | undefined
  /** ms since 1970 */
  readonly now: number
}

/**
 * Returns the change to a job whose run threw; undefined: none, another process or the next start continues the job.
 *
 * Between `commit` and `uncommit` only a refusal by the other side (an S3Error below 500) shows that nothing was done.
 * Any other error, even a mistake in the kind itself, leaves the outcome unknown, so that money is not spent twice.
 */
function afterThrow({ thrown, committed, interruption, now }: Thrown): ((record: JobRecord) => JobRecord) | undefined {
  if (interruption === 'taken-over') return undefined
  const refused = thrown instanceof S3Error && thrown.status < 500
  if (thrown instanceof OutcomeUnknown || (committed && !refused)) {
    return (record) => ({ ...withStatus(record, 'Unknown'), committed: true, notBefore: now + ASK_FIRST_MS, asked: 1 })
  }
  if (interruption === 'cancelled') return (record) => ended(record, { status: 'Cancelled' })
  if (interruption === 'stopping' && !refused) return undefined
  if (thrown instanceof Retry) {
    const { afterMs, message: phase } = thrown
    return (record) => ({
      ...record,
      job: { ...record.job, progress: { ...record.job.progress, phase } },
      committed: false,
      notBefore: now + Math.max(0, afterMs),
      putOff: onceMore(record.putOff, phase, now),
    })
  }
  return (record) => ended(record, { status: 'Failed', failure: failureOf(thrown) })
}

function onceMore(before: PutOff | undefined, message: string, now: number): PutOff {
  return before?.message === message ? { ...before, times: before.times + 1 } : { message, times: 1, since: now }
}

import { setTimeout as sleep } from 'node:timers/promises'
import type { Context } from '../context.js'
import { S3Error } from '../errors/s3-error.js'
import type { Logger } from '../log.js'
import type { Claim } from '../state/claim.js'
import { type Attendance, attended } from './attended.js'
import { type JobKind, Retry } from './job.js'
import type { JobStore } from './job-store.js'
import { LiveJob } from './live-job.js'
import { ASK_FIRST_MS, afterThrow } from './outcome.js'
import { ended, failureOf, hasEnded, type JobRecord, plain, released, renewed, withStatus } from './record.js'

export interface TurnParts {
  readonly store: JobStore
  readonly log: Logger
  /** ms since 1970 */
  readonly now: () => number
  /** Undefined when another process has the job. */
  readonly claim: (id: string) => Promise<Claim | undefined>
  /** Of an identity by its access key id; undefined when there is none any more. */
  readonly contextOf: (accessKeyId: string) => Promise<Context | undefined>
  readonly stopping: AbortSignal
  readonly attendance: Attendance
}

/** What to do with a job after its turn. `elsewhere`: another process is at it. */
export type Next = 'settled' | 'elsewhere' | { readonly againIn: number }

export interface TurnOptions {
  readonly onLive: (live: LiveJob) => void
  /** Its first turn in this process: what became of an unknown one is asked at once. */
  readonly first: boolean
}

// biome-ignore lint/suspicious/noExplicitAny: each kind has an input of its own, which the frame only carries
export type AnyKind = JobKind<any, unknown>

/** Pauses before what became of a job is asked again: doubled from the first (see outcome.ts) to the last, ms. */
const ASK_LAST_MS = 60 * 60_000
/** The same for whether a held job is to begin. */
const DECIDE_LAST_MS = 5 * 60_000
/** Until a job is looked at again that could not be, ms. */
const TROUBLE_MS = 5_000
const WRITE_FIRST_MS = 100
const WRITE_LAST_MS = 30_000

/** Takes a job a step on: asks what became of it, or runs it. Never rejects. */
export async function turn(parts: TurnParts, kind: AnyKind, id: string, { onLive, first }: TurnOptions): Promise<Next> {
  let claim: Claim | undefined
  try {
    claim = await parts.claim(id)
    if (!claim) return 'elsewhere'
    return await step(parts, kind, id, claim, { onLive, first })
  } catch (err) {
    if (!parts.stopping.aborted)
      parts.log.error({ err, job: id }, 'a job could not be taken up; it will be tried again')
    return { againIn: TROUBLE_MS }
  } finally {
    await claim?.release()
  }
}

async function step(
  parts: TurnParts,
  kind: AnyKind,
  id: string,
  claim: Claim,
  { onLive, first }: TurnOptions,
): Promise<Next> {
  const { store, now } = parts
  const record = await store.read(id)
  if (!record || hasEnded(record.job.status)) {
    return (await store.mend(id)) || !store.index.get(id) ? 'settled' : { againIn: TROUBLE_MS }
  }
  const unknown = record.job.status === 'Unknown' || record.committed
  if (record.job.status === 'Cancelling' && !unknown) {
    await store.change(id, (present) => ended(present, { status: 'Cancelled' }))
    return 'settled'
  }
  if (record.notBefore > now() && !((unknown || record.held) && first)) return { againIn: record.notBefore - now() }
  const context = await parts.contextOf(record.job.accessKeyId)
  if (!context) return unknown ? askLater(parts, id) : withoutIdentity(store, id)
  const log = parts.log.child({ job: id, operation: record.job.operation })
  const live = await new LiveJob(record, { store, claim, context, log, now }).open()
  onLive(live)
  try {
    if (record.held) return await decide(parts, kind, live)
    return await (unknown ? reconcile(parts, kind, live) : run(parts, kind, live))
  } finally {
    await live.close()
  }
}

async function withoutIdentity(store: JobStore, id: string): Promise<Next> {
  const message = 'The access key that asked for this job is not there any more.'
  const failure = failureOf(new S3Error('AccessDenied', { message }))
  await store.change(id, (present) => ended(present, { status: 'Failed', failure }))
  return 'settled'
}

async function run(parts: TurnParts, kind: AnyKind, live: LiveJob): Promise<Next> {
  const { store, now } = parts
  const { id } = live.job
  const begun = await store.change(id, (present) => (mayRun(present) ? withStatus(present, 'Active') : present))
  if (begun.job.status !== 'Active') return { againIn: 0 }
  let outcome: ((record: JobRecord) => JobRecord) | undefined
  try {
    live.signal.throwIfAborted()
    const result = plain(await attended(live, parts.attendance, 'told', () => kind.run(live)))
    outcome = (present) => ended(present, { status: 'Complete', result })
  } catch (thrown) {
    live.checkClaim()
    const { committed, interruption } = live
    outcome = afterThrow({ thrown, committed, interruption, now: now() })
    tell(live, thrown)
  }
  await live.close()
  if (!outcome) return 'elsewhere'
  const written = await settle(parts, live, outcome)
  if (hasEnded(written.job.status)) return 'settled'
  return { againIn: Math.max(0, written.notBefore - now()) }
}

function mayRun({ job, held, committed }: JobRecord): boolean {
  return !held && !committed && (job.status === 'New' || job.status === 'Active')
}

/** What somebody who looks into the logs wants to know of a run that threw. */
function tell(live: LiveJob, err: unknown): void {
  if (live.interruption) return
  if (err instanceof Retry) live.note(`To be tried again in ${err.afterMs} ms: ${err.message}`)
  else if (err instanceof S3Error) live.note(`${err.code}: ${err.message}`)
  const expected = err instanceof Retry || (err instanceof S3Error && err.status < 500)
  live.log[expected ? 'info' : 'error']({ err }, expected ? 'a job ended early' : 'a job failed')
}

/** A job that nobody holds any more, and that was not released: its process is gone, or could not say whether it is to begin. */
async function decide(parts: TurnParts, kind: AnyKind, live: LiveJob): Promise<Next> {
  const { store } = parts
  const { id } = live.job
  let decision: 'release' | 'drop' = 'drop'
  try {
    if (kind.held) decision = await attended(live, parts.attendance, 'ends', async () => kind.held?.(live) ?? 'drop')
  } catch (err) {
    if (!parts.stopping.aborted) live.log.warn({ err }, 'whether a job is to begin could not be found out yet')
    return askLater(parts, id, DECIDE_LAST_MS)
  }
  if (decision === 'drop') {
    await store.remove(id, (present) => present.held)
    return 'settled'
  }
  await store.change(id, (present) => released(present))
  return { againIn: 0 }
}

async function reconcile(parts: TurnParts, kind: AnyKind, live: LiveJob): Promise<Next> {
  const { id } = live.job
  await parts.store.change(id, (present) =>
    present.job.status === 'Unknown' ? present : { ...withStatus(present, 'Unknown'), committed: true },
  )
  let answer: Awaited<ReturnType<NonNullable<AnyKind['reconcile']>>>
  try {
    answer = await attended(live, parts.attendance, 'ends', async () => kind.reconcile?.(live))
    if (answer !== undefined && answer !== 'not-done') answer = { done: plain(answer.done) }
  } catch (err) {
    if (!live.interruption) live.log.warn({ err }, 'what became of a job could not be found out yet')
  }
  await live.close()
  if (answer === undefined) return askLater(parts, id)
  const known = answer
  const written = await settle(parts, live, (present) => {
    if (present.job.status !== 'Unknown') return present
    return known === 'not-done' ? renewed(present) : ended(present, { status: 'Complete', result: known.done })
  })
  return hasEnded(written.job.status) ? 'settled' : { againIn: 0 }
}

async function askLater({ store, now }: TurnParts, id: string, longestMs = ASK_LAST_MS): Promise<Next> {
  const written = await store.change(id, (present) => {
    const open = present.job.status === 'Unknown' || (present.held && present.job.status === 'New')
    if (!open) return present
    const pause = Math.min(ASK_FIRST_MS * 2 ** present.asked, longestMs)
    return { ...present, asked: Math.min(present.asked + 1, 30), notBefore: now() + pause }
  })
  return hasEnded(written.job.status) ? 'settled' : { againIn: Math.max(0, written.notBefore - now()) }
}

/** Writes what became of a job, however long the records cannot be written: nobody else knows it. */
async function settle(
  { store, stopping }: TurnParts,
  live: LiveJob,
  to: (record: JobRecord) => JobRecord,
): Promise<JobRecord> {
  for (let pause = WRITE_FIRST_MS; ; pause = Math.min(2 * pause, WRITE_LAST_MS)) {
    try {
      return await store.change(live.job.id, (present) =>
        hasEnded(present.job.status) ? present : to(live.merged(present)),
      )
    } catch (err) {
      if (stopping.aborted || (err instanceof S3Error && err.code === 'NoSuchJob')) throw err
      live.log.error({ err }, 'the outcome of a job could not be written yet')
      await sleep(pause, undefined, { signal: stopping, ref: false })
    }
  }
}

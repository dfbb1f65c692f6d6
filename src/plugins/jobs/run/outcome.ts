import { OutcomeUnknown } from '../../../common/errors/outcome-unknown.js'
import { S3Error } from '../../../common/errors/s3-error.js'
import { type PutOff, Retry } from '../job.js'
import { ended, failureOf, type JobRecord, withStatus } from '../records/record.js'
import type { Interruption } from './live-job.js'

/** Delay before the first attempt to find out the outcome of a job, ms: what was sent may still be in progress. */
export const ASK_FIRST_MS = 5_000

/** The state of a run that threw. */
export interface Thrown {
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
export function afterThrow({
  thrown,
  committed,
  interruption,
  now,
}: Thrown): ((record: JobRecord) => JobRecord) | undefined {
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

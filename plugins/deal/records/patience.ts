import { Retry, type RunningJob, S3Error } from 'dealgate'

/** Backoff of a job while the gateway or network is down, ms. */
export interface Patience {
  /** First pause; doubled each time. */
  readonly firstMs: number
  readonly longestMs: number
  /** Deadline, counted from the first failure. */
  readonly altogetherMs: number
}

/** For jobs that retrieve data, for which a client waits. */
export const bringingBack: Patience = { firstMs: 5000, longestMs: 30_000, altogetherMs: 24 * 3_600_000 }

/** For deals that no client waits for and would request again. */
export const waitingLong: Patience = { firstMs: 5000, longestMs: 15 * 60_000, altogetherMs: 7 * 86_400_000 }

const REASON = 'WaitingForGateway'

/** True for an error that a retry may cure: nothing was refused. */
export function isPassing(error: unknown): error is S3Error {
  return error instanceof S3Error && error.status >= 500 && error.status !== 501
}

/**
 * What a job throws in place of `error`: a Retry while the error is transient and the deadline has not passed,
 * otherwise the error itself.
 * @param now ms since 1970
 */
export function patiently(
  { putOff, signal }: Pick<RunningJob<unknown>, 'putOff' | 'signal'>,
  error: unknown,
  now: number,
  { firstMs, longestMs, altogetherMs }: Patience,
): unknown {
  if (signal.aborted || !isPassing(error)) return error
  const { times, since } = putOff?.message === REASON ? putOff : { times: 0, since: now }
  if (now - since >= altogetherMs) return error
  return new Retry(Math.min(firstMs * 2 ** times, longestMs), REASON, { cause: error })
}

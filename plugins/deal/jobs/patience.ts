import { S3Error } from '../../../src/errors/s3-error.js'
import { Retry, type RunningJob } from '../../../src/jobs/job.js'

/** How a job waits for a gateway or network that is down, ms. */
export interface Patience {
  /** The first pause; each one after it is twice as long. */
  readonly firstMs: number
  readonly longestMs: number
  /** Since the first time it could not be reached. */
  readonly altogetherMs: number
}

/** Of jobs that bring something back: somebody waits for it. */
export const bringingBack: Patience = { firstMs: 5000, longestMs: 30_000, altogetherMs: 24 * 3_600_000 }

const REASON = 'WaitingForGateway'

/** Whether somebody who asks again may be better off: nothing was refused. */
export function isPassing(error: unknown): error is S3Error {
  return error instanceof S3Error && error.status >= 500 && error.status !== 501
}

/** What a job is to end its run with that was thrown `error`: a Retry where that is passing and patience not at its end, else the error itself. @param now ms since 1970 */
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

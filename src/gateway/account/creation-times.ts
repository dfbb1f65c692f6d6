import { S3Error } from '../../../common/errors/s3-error.js'
import { withinDeadline } from '../../../common/time.js'
import type { CreationTimes, Gateway } from '../../api/gateway.js'
import { isLogInRefused } from './log-in.js'

/** Age of an answer at which it is renewed in the background, and age at which it expires, ms. */
const RENEWED_MS = 30_000
const BELIEVED_MS = 60_000
/** Pause after a failed query before the gateway is asked again, ms. */
const PAUSE_MS = 5_000
/** Longest wait of `cached` for one query, shared by all callers, ms. */
const MAX_WAIT_MS = 2_000

interface ReadTimes {
  readonly creationTimes: ReadonlyMap<string, string>
  /** Time of the query, milliseconds since 1970. */
  readonly asked: number
}

/** @param now present time, milliseconds since 1970 */
export function readCreationTimes(
  gateway: Pick<Gateway, 'features' | 'listBuckets'>,
  now: () => number = Date.now,
): CreationTimes {
  let known: ReadTimes | undefined
  let asking: Promise<void> | undefined
  let pausedUntil = 0

  async function ask(): Promise<ReadTimes> {
    const asked = now()
    const { fixedBuckets } = await gateway.features()
    const buckets = fixedBuckets ? await gateway.listBuckets() : []
    const answer = { creationTimes: new Map(buckets.filter(isDated).map((one) => [one.name, one.creationDate])), asked }
    if (!known || known.asked <= asked) known = answer
    return answer
  }

  async function askQuietly(): Promise<void> {
    try {
      await ask()
    } catch {
      pausedUntil = now() + PAUSE_MS
    } finally {
      asking = undefined
    }
  }

  /**
   * Runs one query at a time. Resolves when it ends, whatever its outcome, or when it takes too long; later callers
   * then do not wait for it either.
   */
  function renew(): Promise<void> {
    if (now() < pausedUntil) return Promise.resolve()
    asking ??= withinDeadline(askQuietly(), MAX_WAIT_MS).catch(() => {})
    return asking
  }

  const age = () => (known ? now() - known.asked : Number.POSITIVE_INFINITY)
  return {
    async now(bucket) {
      try {
        return (await ask()).creationTimes.get(bucket)
      } catch (error) {
        // A caller with an account of its own must keep working while the gateway refuses the server's account.
        if (isLogInRefused(error) || (error instanceof S3Error && error.code === 'AccessDenied')) return undefined
        throw error
      }
    },
    async cached(bucket) {
      if (age() >= RENEWED_MS) {
        const renewed = renew()
        if (age() >= BELIEVED_MS) await renewed
      }
      return age() < BELIEVED_MS ? known?.creationTimes.get(bucket) : undefined
    },
  }
}

/** Go writes the year 1 for an unknown time. */
function isDated({ creationDate }: { readonly creationDate: string }): boolean {
  return !creationDate.startsWith('0001-')
}

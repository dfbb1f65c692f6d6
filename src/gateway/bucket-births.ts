import { withinDeadline } from '../common/deadline.js'
import { S3Error } from '../errors/s3-error.js'
import type { Gateway } from './gateway.js'

/** When buckets were made, as the gateway tells it: what a bucket is told by from an earlier one of its name that somebody has deleted without this server. */
export interface BucketBirths {
  /**
   * Asks the gateway. Undefined where it cannot be told: on a gateway whose dates move (GatewayFeatures.fixedBuckets), and for a bucket that is not there or that the
   * server's own account may not see, be it because the gateway refuses that account. Later ones are greater as texts. Throws S3Error.
   */
  now(bucket: string): Promise<string | undefined>
  /** As it was a minute ago or later, hardly ever asking and never for long. Never rejects: undefined also where the gateway could not be asked. */
  lately(bucket: string): Promise<string | undefined>
}

/** Age of an answer, ms, at which the next one is asked for while this one still goes, and at which it goes no more. */
const RENEWED_MS = 30_000
export const BELIEVED_MS = 60_000
/** For how long a gateway that could not be asked is not asked again, ms. */
const PAUSE_MS = 5_000
/** How long `lately` waits at most for one question, whoever asks meanwhile, ms. */
const PATIENCE_MS = 2_000

interface Answer {
  readonly births: ReadonlyMap<string, string>
  /** Milliseconds since 1970: when it was asked for. */
  readonly asked: number
}

/** @param now present time in ms since 1970 */
export function bucketBirths(
  gateway: Pick<Gateway, 'features' | 'listBuckets'>,
  now: () => number = Date.now,
): BucketBirths {
  let known: Answer | undefined
  let asking: Promise<void> | undefined
  let pausedUntil = 0

  async function ask(): Promise<Answer> {
    const asked = now()
    const { fixedBuckets } = await gateway.features()
    const buckets = fixedBuckets ? await gateway.listBuckets() : []
    const answer = { births: new Map(buckets.filter(isDated).map((one) => [one.name, one.creationDate])), asked }
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

  /** One at a time. Resolves when it is over, come what may, or has taken too long: then nobody who comes later waits for it either. */
  function renew(): Promise<void> {
    if (now() < pausedUntil) return Promise.resolve()
    asking ??= withinDeadline(askQuietly(), PATIENCE_MS).catch(() => {})
    return asking
  }

  const age = () => (known ? now() - known.asked : Number.POSITIVE_INFINITY)
  return {
    async now(bucket) {
      try {
        return (await ask()).births.get(bucket)
      } catch (error) {
        // Whoever comes with an account of his own is not to be kept from his work.
        if (error instanceof S3Error && error.code === 'AccessDenied') return undefined
        throw error
      }
    },
    async lately(bucket) {
      if (age() >= RENEWED_MS) {
        const renewed = renew()
        if (age() >= BELIEVED_MS) await renewed
      }
      return age() < BELIEVED_MS ? known?.births.get(bucket) : undefined
    },
  }
}

/** Go writes the year 1 for a time that it does not know. */
function isDated({ creationDate }: { readonly creationDate: string }): boolean {
  return !creationDate.startsWith('0001-')
}

import { S3Error } from '../../common/errors/s3-error.js'

/** Failed sign-ins of one access key before further ones have to wait. */
const FREE = 5
const WINDOW_MS = 15 * 60_000
/** Most access keys that are counted. */
const MOST = 10_000

interface Failures {
  readonly count: number
  /** ms since 1970. */
  readonly since: number
}

/**
 * Limits failed sign-ins of each access key at a service behind the server, in this process, so that a holder of a key
 * does not use the server, whose address the service may trust, to guess passwords.
 */
export class Attempts {
  readonly #failures = new Map<string, Failures>()
  readonly #now: () => number

  constructor(now: () => number) {
    this.#now = now
  }

  /** Runs a sign-in, which counts as failed until it has succeeded. Throws S3Error SlowDown. */
  async run<T>(accessKeyId: string, attempt: () => Promise<T>): Promise<T> {
    const now = this.#now()
    const known = this.#failures.get(accessKeyId)
    const failures = known && now - known.since < WINDOW_MS ? known : { count: 0, since: now }
    if (failures.count >= FREE) {
      const seconds = Math.ceil((failures.since + WINDOW_MS - now) / 1000)
      throw new S3Error('SlowDown', {
        message: `Too many sign-ins have failed. Try again in ${seconds} s.`,
        headers: { 'retry-after': String(seconds) },
      })
    }
    const [oldest] = this.#failures.keys()
    if (this.#failures.size >= MOST && oldest !== undefined) this.#failures.delete(oldest)
    this.#failures.set(accessKeyId, { ...failures, count: failures.count + 1 })
    const result = await attempt()
    this.#failures.delete(accessKeyId)
    return result
  }
}

import { setTimeout as sleep } from 'node:timers/promises'
import { S3Error } from '../../common/errors/s3-error.js'
import type { Logger } from '../../common/log.js'
import type { Lease } from '../api/locks.js'
import type { PeriodicWork } from '../api/plugin.js'

/** Timers of Node reach 2^31 - 1 ms and fire at once beyond; a pause is up to 10 % longer than this, seconds. */
const MAX_EVERY_S = 1_900_000

/** Runs periodic work from now on. The timer does not keep the process alive. */
export class Schedule {
  readonly #work: PeriodicWork
  readonly #lease: (name: string) => Promise<Lease | undefined>
  readonly #log: Logger
  readonly #ending = new AbortController()
  readonly #running: Promise<void>

  /**
   * @param lease resolves undefined while another server holds the lease of this name
   * @throws RangeError for an interval out of bounds
   */
  constructor(work: PeriodicWork, lease: (name: string) => Promise<Lease | undefined>, log: Logger) {
    const { name, everySeconds } = work
    if (!(everySeconds > 0 && everySeconds <= MAX_EVERY_S))
      throw new RangeError(`everySeconds of ${name} must be more than 0 and at most ${MAX_EVERY_S}`)
    this.#work = work
    this.#lease = lease
    this.#log = log
    this.#running = this.#loop(this.#ending.signal)
  }

  /** Starts no more runs, signals the one under way and waits for its end. */
  async stop(): Promise<void> {
    this.#ending.abort()
    await this.#running
  }

  async #loop(signal: AbortSignal): Promise<void> {
    const { name, atStart = false } = this.#work
    if (!atStart) await this.#pause(signal)
    while (!signal.aborted) {
      try {
        await this.#run(signal)
      } catch (err) {
        if (signal.aborted) continue
        // The message of an S3Error says all that an operator needs, such as a gateway that does not answer.
        const why = err instanceof S3Error && err.status === 503 ? { reason: err.message } : { err }
        this.#log.warn({ ...why, work: name }, 'periodic work failed; it runs again at its next time')
      }
      await this.#pause(signal)
    }
  }

  async #run(signal: AbortSignal): Promise<void> {
    const lease = await this.#lease(this.#work.name)
    if (!lease) return
    try {
      await this.#work.run({ signal, mayGoOn: () => !signal.aborted && lease.held() })
    } finally {
      await lease.release()
    }
  }

  async #pause(signal: AbortSignal): Promise<void> {
    const ms = this.#work.everySeconds * 1000 * (0.9 + Math.random() * 0.2)
    await sleep(ms, undefined, { signal, ref: false }).catch(() => {})
  }
}

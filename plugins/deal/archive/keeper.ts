import { type PeriodicRun, type PeriodicWork, S3Error } from 'dealgate'
import pMap from 'p-map'
import type { DealParts } from '../parts.js'
import { requireHealth } from '../require-health.js'
import { GiveUp } from './give-up.js'
import { isUnderWay } from './kept-elsewhere.js'
import type { LocalCopy } from './local-copies.js'
import { giveUp as forgetRestore } from './restore-job.js'

/** Most evictions at the same time. */
const AT_ONCE = 4

/**
 * Manages the gateway's local copies: evicts those that may go, because a deal holds the object or because a restored
 * copy has expired, and cleans up after cancelled restores. Of the servers that share a state, one runs it at a time.
 */
export class Keeper {
  readonly #parts: DealParts
  readonly #giveUp: GiveUp

  constructor(parts: DealParts) {
    this.#parts = parts
    this.#giveUp = new GiveUp(parts)
  }

  /** The periodic work that runs the keeper. */
  get work(): PeriodicWork {
    const { evictionIntervalSeconds } = this.#parts.options
    return { name: 'local-copies', everySeconds: evictionIntervalSeconds, run: (current) => this.#lookAtAll(current) }
  }

  async #lookAtAll({ signal, mayGoOn }: PeriodicRun): Promise<void> {
    const { now } = this.#parts.host
    const evicting = await this.#giveUp.mayEvict()
    const attempt = (due: readonly LocalCopy[]) =>
      pMap(due, (copy) => this.#attempt(copy, evicting, signal), { concurrency: AT_ONCE })
    const due: LocalCopy[] = []
    for await (const { bucket, key } of this.#parts.copies.all()) {
      if (!mayGoOn()) return
      // An eviction may take minutes, during which other copies change.
      const copy = await this.#parts.copies.get(bucket, key)
      if (!copy) continue
      if (copy.restoring !== undefined) await this.#lookAfter(copy, copy.restoring, signal)
      else if (copy.due !== undefined && copy.due <= now()) due.push(copy)
      if (due.length === AT_ONCE) await attempt(due.splice(0))
    }
    await attempt(due)
  }

  async #attempt(copy: LocalCopy, evicting: boolean, signal: AbortSignal): Promise<void> {
    await this.#guarded(copy, signal, () => this.#giveUp.attempt(copy, evicting, signal))
  }

  /** A job that was cancelled before it ran leaves the object marked as restoring. */
  async #lookAfter(copy: LocalCopy, jobId: string, signal: AbortSignal): Promise<void> {
    await this.#guarded(copy, signal, async () => {
      if (await isUnderWay(this.#parts, jobId)) return
      await forgetRestore(this.#parts, this.#parts.host.own, copy)
    })
  }

  async #guarded(copy: LocalCopy, signal: AbortSignal, work: () => Promise<void>): Promise<void> {
    const { host, copies } = this.#parts
    const { bucket, key } = copy
    try {
      await work()
    } catch (err) {
      signal.throwIfAborted()
      const refused = err instanceof S3Error && err.status < 500
      host.log.warn({ err, bucket, key, refused }, 'the eviction of a local copy failed, and the copy stays')
      if (refused) await copies.replace(copy)
      else await requireHealth(this.#parts)
    }
  }
}

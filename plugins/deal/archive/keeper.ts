import { S3Error } from '../../../src/errors/s3-error.js'
import { inOrder } from '../../../src/operations/common/in-order.js'
import type { Claim } from '../../../src/state/claim.js'
import type { DealParts } from '../parts.js'
import { Rounds, requireHealth } from '../rounds.js'
import { GiveUp } from './give-up.js'
import { isUnderWay } from './kept-elsewhere.js'
import type { LocalCopy } from './local-copies.js'
import { giveUp as forgetRestore } from './restore-job.js'

/** Copies that the gateway is asked to give up at once. */
const AT_ONCE = 4

/**
 * Looks after the gateway's copies: gives up those that may go, because a deal holds the object or because the time of a restored one is over, and clears away what is left of
 * restores that were cancelled. Of servers on one state one does it at a time.
 */
export class Keeper extends Rounds {
  readonly #parts: DealParts
  readonly #giveUp: GiveUp

  constructor(parts: DealParts) {
    super(parts.host, {
      claim: 'deal-local-copies',
      seconds: parts.options.evictionIntervalSeconds,
      atOnce: false,
      failure: 'local copies could not be looked after; they will be looked at again',
      round: (claim, signal) => this.#lookAtAll(claim, signal),
    })
    this.#parts = parts
    this.#giveUp = new GiveUp(parts)
  }

  async #lookAtAll(claim: Claim, signal: AbortSignal): Promise<void> {
    const { now } = this.#parts.host
    const evicting = await this.#giveUp.mayEvict()
    const attempt = (due: readonly LocalCopy[]) =>
      inOrder(due, AT_ONCE, (copy) => this.#attempt(copy, evicting, signal))
    const due: LocalCopy[] = []
    for await (const { bucket, key } of this.#parts.copies.all()) {
      if (signal.aborted || !claim.held()) return
      // Giving one up may take minutes, in which the others change.
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

  /** A job that was cancelled before its turn says nothing to the object. */
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
      host.log.warn({ err, bucket, key, refused }, 'a local copy cannot be looked after, and stays')
      if (refused) await copies.replace(copy)
      else await requireHealth(this.#parts)
    }
  }
}

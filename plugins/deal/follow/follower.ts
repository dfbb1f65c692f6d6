import { S3Error } from '../../../src/errors/s3-error.js'
import { inOrder } from '../../../src/operations/common/in-order.js'
import type { Claim } from '../../../src/state/claim.js'
import { DealClient } from '../deal-client.js'
import { tellObject } from '../facts.js'
import { endedInVain } from '../jobs/made-before.js'
import { askState } from '../live-state.js'
import type { DealParts } from '../parts.js'
import type { DealRecord } from '../records/deal-record.js'
import { Rounds } from '../rounds.js'
import { renew } from './renew.js'
import { rescue } from './rescue.js'
import { isDue } from './schedule.js'

/** Deals that the gateway is asked about at once. */
const AT_ONCE = 4
const SWEEP_MS = 3_600_000

/**
 * Asks the gateway now and then what has become of deals that are under way, so that objects tell it, and has those renewed that are about to end. Of servers on one state one
 * does it at a time.
 */
export class Follower extends Rounds {
  readonly #parts: DealParts
  /** ms since 1970. */
  #swept = 0

  constructor(parts: DealParts) {
    super(parts.host, {
      claim: 'deal-status',
      seconds: parts.options.statusIntervalSeconds,
      atOnce: true,
      failure: 'deals could not be followed; they will be looked at again',
      round: async (claim, signal) => {
        await this.#sweep()
        await this.#follow(claim, signal)
      },
    })
    this.#parts = parts
  }

  async #follow(claim: Claim, signal: AbortSignal): Promise<void> {
    const { deals, host, options } = this.#parts
    const { dealStatus } = await host.own.gateway.features()
    let due: DealRecord[] = []
    for await (const deal of deals.open()) {
      if (signal.aborted || !claim.held()) return
      if (!dealStatus || !isDue(deal, host.now(), options.rescueBeforeDays)) continue
      due.push(deal)
      if (due.length < AT_ONCE) continue
      await this.#ask(due)
      due = []
    }
    await this.#ask(due)
  }

  async #ask(due: readonly DealRecord[]): Promise<void> {
    const { host, options, deals } = this.#parts
    const client = new DealClient(host.own.gateway, host.log)
    await inOrder(due, AT_ONCE, async (deal) => {
      const { dealCid } = deal.deal
      const live = await askState(client, dealCid, host.now(), options.epochSeconds)
      const known = live && (await deals.setLive(dealCid, live))
      if (!known) return
      try {
        if (live.state !== deal.live?.state || live.expires !== deal.live?.expires)
          await tellObject(this.#parts, host.own, known)
        await renew(this.#parts, known)
        await rescue(this.#parts, known)
      } catch (err) {
        // Trouble with the gateway or the records ends the turn; what is wrong with one object does not.
        if (!(err instanceof S3Error) || err.status >= 500) throw err
        host.log.warn({ err, deal: dealCid, bucket: deal.bucket }, 'the object of a deal could not be told of it')
      }
    })
  }

  async #sweep(): Promise<void> {
    const { host, spending, attempts, jobs } = this.#parts
    if (host.now() - this.#swept < SWEEP_MS) return
    await spending.sweep((jobId) => endedInVain(this.#parts, jobId))
    await attempts.sweep(jobs)
    this.#swept = host.now()
  }
}

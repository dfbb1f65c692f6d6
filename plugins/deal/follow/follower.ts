import { S3Error } from '../../../src/errors/s3-error.js'
import { inOrder } from '../../../src/operations/common/in-order.js'
import type { Claim } from '../../../src/state/claim.js'
import { DealClient } from '../deal-client.js'
import { tellObject } from '../facts.js'
import { endedInVain } from '../jobs/made-before.js'
import { askState } from '../live-state.js'
import type { DealParts } from '../parts.js'
import { type DealRecord, isFinal } from '../records/deal-record.js'
import { Rounds, requireHealth } from '../rounds.js'
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
      try {
        const live = await askState(client, dealCid, host.now(), options.epochSeconds)
        const known = live && (await deals.setLive(dealCid, live))
        if (known) await this.#act(deal, known)
      } catch (err) {
        host.log.warn(
          { err, deal: dealCid, bucket: deal.bucket },
          'a deal could not be followed; it will be looked at again',
        )
        await requireHealth(this.#parts)
      }
    })
  }

  /** What follows from the state of a deal. None of it depends on the others: an object that cannot be told of its deal is brought back all the same. */
  async #act(before: DealRecord, deal: DealRecord): Promise<void> {
    const { host, deals } = this.#parts
    const { state, expires } = deal.live ?? {}
    const over = isFinal(state)
    const changed = state !== before.live?.state || expires !== before.live?.expires
    const steps = [
      async () => void ((changed || over) && (await tellObject(this.#parts, host.own, deal))),
      () => renew(this.#parts, deal),
      () => rescue(this.#parts, deal),
    ]
    const failures: unknown[] = []
    for (const step of steps) await step().catch((error) => failures.push(error))
    const passing = failures.find((error) => !(error instanceof S3Error) || error.status >= 500)
    if (passing !== undefined) throw passing
    const { dealCid } = deal.deal
    for (const err of failures)
      host.log.warn({ err, deal: dealCid, bucket: deal.bucket }, 'what a deal is about could not be looked after')
    if (over) await deals.close(dealCid)
  }

  async #sweep(): Promise<void> {
    const { host, spending, attempts, jobs } = this.#parts
    if (host.now() - this.#swept < SWEEP_MS) return
    await spending.sweep((jobId) => endedInVain(this.#parts, jobId))
    await attempts.sweep(jobs)
    this.#swept = host.now()
  }
}

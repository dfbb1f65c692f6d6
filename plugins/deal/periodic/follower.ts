import { type PeriodicRun, type PeriodicWork, S3Error } from 'dealgate/plugin'
import pMap from 'p-map'
import { configurationOf } from '../configuration.js'
import { DealClient } from '../deal-client.js'
import { annotateObject, askState } from '../deal-document.js'
import type { DealDeps } from '../deps.js'
import { requireHealth } from '../known-providers.js'
import { type DealRecord, idOf, isDoubted, isDue, isFinal, isVerified } from '../records/deal-record.js'
import { dealsHolding, endedInVain } from '../records/held-deals.js'
import { renew } from './renew.js'
import { rescue, verify } from './verify.js'

/** Most state queries at the same time. */
const MAX_CONCURRENCY = 4
const SWEEP_MS = 3_600_000

/**
 * Follows the state of open deals, updates the metadata of their objects and renews deals that are about to end. Of the
 * servers that share a state, one runs it at a time.
 */
export class Follower {
  readonly #deps: DealDeps
  /** ms since 1970. */
  #swept = 0

  constructor(deps: DealDeps) {
    this.#deps = deps
  }

  get work(): PeriodicWork {
    return {
      name: 'status',
      everySeconds: this.#deps.options.statusIntervalSeconds,
      atStart: true,
      run: async (current) => {
        await this.#sweep()
        await this.#follow(current)
      },
    }
  }

  async #follow({ mayGoOn }: PeriodicRun): Promise<void> {
    const { deals, host, options } = this.#deps
    const { dealStatus } = await host.own.gateway.features()
    let due: DealRecord[] = []
    for await (const deal of deals.open()) {
      if (!mayGoOn()) return
      if (deal.generation && (await this.#retired(deal))) continue
      if (!dealStatus || !isDue(deal, host.now(), options.rescueBeforeDays)) continue
      due.push(deal)
      if (due.length < MAX_CONCURRENCY) continue
      await this.#ask(due)
      due = []
    }
    await this.#ask(due)
  }

  async #retired(deal: DealRecord): Promise<boolean> {
    try {
      return await retire(this.#deps, deal)
    } catch (err) {
      this.#deps.host.log.warn({ err, deal: deal.deal.dealCid }, 'a deal of an old backup could not be given up yet')
      await requireHealth(this.#deps)
      return false
    }
  }

  async #ask(due: readonly DealRecord[]): Promise<void> {
    const { host, options, deals } = this.#deps
    const client = new DealClient(host.own.gateway, host.log)
    await pMap(
      due,
      async (deal) => {
        const { dealCid } = deal.deal
        try {
          const live = await askState(client, dealCid, host.now(), options.epochSeconds, deal.live)
          const known = live && (await deals.setLive(idOf(deal), live))
          if (known) await this.#act(deal, known)
        } catch (err) {
          host.log.warn(
            { err, deal: dealCid, bucket: deal.bucket },
            'the state of a deal could not be followed; retrying in the next run',
          )
          await requireHealth(this.#deps)
        }
      },
      { concurrency: MAX_CONCURRENCY },
    )
  }

  /**
   * Acts on the state of a deal. The steps are independent: an object whose metadata cannot be updated is still
   * restored.
   */
  async #act(before: DealRecord, deal: DealRecord): Promise<void> {
    const { host, deals } = this.#deps
    const { state, expires } = deal.live ?? {}
    const over = isFinal(state)
    const changed = state !== before.live?.state || expires !== before.live?.expires
    const steps = [
      async () => void ((changed || over) && (await annotateObject(this.#deps, host.own, deal))),
      async () => void (await verify(this.#deps, deal)),
      () => renew(this.#deps, deal),
      () => rescue(this.#deps, deal, (other) => verify(this.#deps, other)),
    ]
    const failures: unknown[] = []
    for (const step of steps) await step().catch((error) => failures.push(error))
    const passing = failures.find((error) => !(error instanceof S3Error) || error.status >= 500)
    if (passing !== undefined) throw passing
    const { dealCid } = deal.deal
    for (const err of failures)
      host.log.warn({ err, deal: dealCid, bucket: deal.bucket }, 'a step that follows from the state of a deal failed')
    if (over) await deals.close(idOf(deal))
  }

  async #sweep(): Promise<void> {
    const { host, spending, attempts, jobs, waits } = this.#deps
    if (host.now() - this.#swept < SWEEP_MS) return
    await spending.sweep((jobId) => endedInVain(this.#deps, jobId))
    await attempts.sweep(jobs)
    await waits.lookAtAll()
    this.#swept = host.now()
  }
}

/**
 * Ends the monitoring and the renewals of a deal whose backup is older than the generations that its schedule keeps. A
 * deal that may be the last one for an object that is still there stays. Resolves true when the deal is retired.
 */
export async function retire(deps: DealDeps, record: DealRecord): Promise<boolean> {
  const { host, deals } = deps
  if (!(await isOutdated(deps, record)) || (await isNeeded(deps, record))) return false
  await deals.setRetired(idOf(record), host.now())
  await deals.close(idOf(record))
  host.log.info({ bucket: record.bucket, deal: record.deal.dealCid }, 'a deal of an old backup is no longer monitored')
  return true
}

async function isOutdated({ host, schedules }: DealDeps, { bucket, generation }: DealRecord): Promise<boolean> {
  if (!generation) return false
  const { schedule: id, due } = generation
  const keep = (await configurationOf(host, bucket))?.Schedules?.find(({ Id }) => Id === id)?.KeepGenerations
  if (keep === undefined) return false
  const complete = (await schedules.get(bucket, id))?.complete ?? []
  return complete.filter((other) => other > due).length >= keep
}

/** True unless the object was replaced or removed, or another deal certainly holds it. */
async function isNeeded(deps: DealDeps, { bucket, key, revision, deal }: DealRecord): Promise<boolean> {
  if (key === undefined || revision === undefined) return false
  const object = await deps.host.own.store.findRevision(bucket, key, revision)
  if (!object) return false
  const others = (await dealsHolding(deps, object)).filter((other) => other.deal.dealCid !== deal.dealCid)
  return !others.some((other) => (object.cold ? isVerified(other) : !isDoubted(other)))
}

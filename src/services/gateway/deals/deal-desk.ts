import { setTimeout as delay } from 'node:timers/promises'
import { type DealPhase, NetworkError } from '../../network/network.js'
import type { GatewayContext } from '../context.js'
import { GatewayError } from '../errors.js'
import { dropDeal, type Leftovers, type MakerTools, makeDeal } from './deal-maker.js'
import type { CompleteDeal, DealAsk, DealRow } from './deals.js'

type Tools = MakerTools & Pick<GatewayContext, 'tasks' | 'limits'>

/** How far a deal has come. */
export interface Progress {
  /** `Listing`: its files are being collected. `Settling`: the gateway was cut short, and learns from the network what became of it. */
  readonly phase: DealPhase | 'Listing' | 'Settling'
  /** Of the phase: packed, or gone into the piece CID. */
  readonly bytesDone: number
  readonly bytesTotal: number
  readonly filesDone: number
  readonly filesTotal: number
}

interface Underway {
  readonly ask: DealAsk
  readonly made: Promise<CompleteDeal>
  progress: Progress
}

/** Takes orders for deals: one deal for each token, however often it is sent, also after a crash. */
export class DealDesk {
  readonly #tools: Tools
  readonly #byToken = new Map<string, Underway>()
  /** Pending deals that nobody works on, by id. */
  readonly #unsettled = new Map<number, DealRow>()
  /** Buckets of which bodies may be kept for no deal. */
  readonly #held = new Set<number>()
  readonly #settling = new Map<number, Promise<void>>()
  #retrying = false
  readonly #leftovers: Leftovers = {
    pending: (row) => {
      this.#unsettled.set(row.id, row)
      this.#retryLater()
    },
    held: (bucket) => {
      this.#held.add(bucket)
      this.#retryLater()
    },
  }

  constructor(tools: Tools) {
    this.#tools = tools
  }

  /**
   * Makes the deal. With the token of an earlier request, which must have asked for the same, it answers that one's deal, waiting for it while it is under way.
   * Throws GatewayError.
   */
  async make(ask: DealAsk): Promise<CompleteDeal> {
    const { token } = ask
    if (token === undefined) return this.#start(ask).made
    const underway = this.#byToken.get(token)
    if (underway !== undefined) {
      mustAskTheSame(underway.ask, ask)
      return underway.made
    }
    const row = this.#tools.deals.findByToken(token)
    if (row === undefined) return this.#start(ask).made
    mustAskTheSame(row, ask)
    if (isComplete(row)) return row
    await this.#settle(row)
    return this.make(ask)
  }

  /** Undefined when no deal with this token is under way or made. */
  progress(token: string): Progress | undefined {
    const underway = this.#byToken.get(token)
    if (underway !== undefined) return underway.progress
    const row = this.#tools.deals.findByToken(token)
    if (row === undefined) return undefined
    const { bytes: bytesTotal, files: filesTotal } = row
    if (!isComplete(row)) return { phase: 'Settling', bytesDone: 0, bytesTotal, filesDone: 0, filesTotal }
    return { phase: 'Done', bytesDone: bytesTotal, bytesTotal, filesDone: filesTotal, filesTotal }
  }

  /** Finds out what became of deals that an earlier process was cut short in; of those it cannot learn now, it does so later. */
  async recover(): Promise<void> {
    for (const row of this.#tools.deals.pending()) {
      if (row.dropped || row.network === this.#tools.network.kind) this.#unsettled.set(row.id, row)
    }
    await this.#settleAll()
  }

  #start(ask: DealAsk): Underway {
    const progress: Progress = { phase: 'Listing', bytesDone: 0, bytesTotal: 0, filesDone: 0, filesTotal: 0 }
    const made = this.#tools.tasks
      .run((signal) =>
        makeDeal(
          this.#tools,
          ask,
          signal,
          ({ files: filesTotal }, progress) => {
            underway.progress = { ...progress, filesTotal }
          },
          this.#leftovers,
        ),
      )
      .finally(() => {
        if (ask.token !== undefined) this.#byToken.delete(ask.token)
      })
    const underway: Underway = { ask, made, progress }
    if (ask.token !== undefined) this.#byToken.set(ask.token, underway)
    return underway
  }

  async #settleAll(): Promise<void> {
    for (const row of this.#unsettled.values()) {
      try {
        await this.#settle(row)
      } catch (error) {
        this.#tools.log.warn({ err: error }, 'What became of a deal could not be found out yet.')
      }
    }
    for (const bucket of this.#held) {
      try {
        await this.#tools.holds.letGoUnheld(bucket)
        this.#held.delete(bucket)
      } catch (error) {
        this.#tools.log.warn({ err: error }, 'What deals were made of could not be removed yet.')
      }
    }
    if (this.#unsettled.size + this.#held.size > 0) this.#retryLater()
  }

  #retryLater(): void {
    if (this.#retrying) return
    this.#retrying = true
    const retry = async (signal: AbortSignal): Promise<void> => {
      await delay(this.#tools.limits.settleMs, undefined, { signal, ref: false })
      this.#retrying = false
      await this.#settleAll()
    }
    // Ends by itself only when the gateway stops.
    this.#tools.tasks.run(retry).catch(() => {})
  }

  /** Throws GatewayError NetworkUnavailable. */
  #settle(row: DealRow): Promise<void> {
    const settling = this.#settling.get(row.id)
    if (settling !== undefined) return settling
    const started = this.#find(row).finally(() => this.#settling.delete(row.id))
    this.#settling.set(row.id, started)
    return started
  }

  async #find({ id, reference, network: kind, dropped }: DealRow): Promise<void> {
    const { network, deals, writer, log } = this.#tools
    if (dropped) {
      await dropDeal(this.#tools, id)
      this.#unsettled.delete(id)
      return
    }
    if (kind !== network.kind) {
      const value = `What became of the deal is known to another storage network (${kind}) than the one in use: start the gateway with that one.`
      throw new GatewayError('NetworkUnavailable', { value })
    }
    try {
      const record = await network.find(reference)
      if (record === undefined) await dropDeal(this.#tools, id)
      else await writer.run(() => deals.complete(id, record))
      this.#unsettled.delete(id)
      log.info({ reference, made: record !== undefined }, 'Found out what became of a deal that was cut short.')
    } catch (error) {
      if (!(error instanceof NetworkError)) throw error
      throw new GatewayError('NetworkUnavailable', { value: error.message }, error)
    }
  }
}

function isComplete(row: DealRow): row is CompleteDeal {
  return row.record !== undefined
}

function mustAskTheSame(first: DealAsk, second: DealAsk): void {
  const same =
    first.bucketName === second.bucketName &&
    first.key.equals(second.key) &&
    (Object.keys(first.terms) as (keyof typeof first.terms)[]).every((name) => first.terms[name] === second.terms[name])
  if (!same) throw new GatewayError('TokenReused')
}

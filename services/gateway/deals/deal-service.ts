import { setTimeout as delay } from 'node:timers/promises'
import { type DealPhase, NetworkError } from '../../network/network.js'
import type { Database } from '../../store/database.js'
import type { GatewayCore } from '../core.js'
import { GatewayError } from '../errors.js'
import type { GatewayTables } from '../index-schema.js'
import { bucketLock } from '../store/buckets.js'
import { newGeneration } from '../store/object-row.js'
import { type DealMakerContext, dropDeal, type Leftovers, makeDeal, TokenInUse } from './deal-maker.js'
import type { CompleteDeal, DealAsk, DealRow } from './deals.js'

type DealServiceContext = DealMakerContext & Pick<GatewayCore, 'tasks' | 'limits'>

export interface Progress {
  /**
   * `Listing`: the gateway collects the files. `Settling`: a crash interrupted the gateway, which asks the network for
   * the outcome.
   */
  readonly phase: DealPhase | 'Listing' | 'Settling'
  /** Bytes done in this phase: packed, or hashed into the piece CID. */
  readonly bytesDone: number
  readonly bytesTotal: number
  readonly filesDone: number
  readonly filesTotal: number
}

export const LISTING: Progress = Object.freeze({
  ...{ phase: 'Listing', bytesDone: 0, bytesTotal: 0, filesDone: 0, filesTotal: 0 },
})

/** Interval of looks at a deal that another process makes, and of notes about one, ms. */
export const POLL_MS = 250
const PUBLISH_MS = 1000

interface Underway {
  readonly ask: DealAsk
  readonly reference: string
  readonly made: Promise<CompleteDeal>
  progress: Progress
}

/**
 * Accepts requests for deals and makes one deal per account and token, however often a request is repeated, also after
 * a crash.
 */
export class DealService {
  readonly #context: DealServiceContext
  /** Deals that are being made, by account and token: see `tokenOf`. */
  readonly #byToken = new Map<string, Underway>()
  /** Pending deals without a running task, by id. */
  readonly #unreconciled = new Map<number, DealRow>()
  /** Deals that may have been recorded as pending, by reference, with their buckets. */
  readonly #begun = new Map<string, number>()
  readonly #settling = new Map<number, Promise<void>>()
  #retrying = false
  readonly #leftovers: Leftovers = {
    pending: (row) => {
      this.#unreconciled.set(row.id, row)
      this.#retryLater()
    },
    begun: (bucket, reference) => {
      this.#begun.set(reference, bucket)
      this.#retryLater()
    },
  }

  constructor(context: DealServiceContext) {
    this.#context = context
  }

  /**
   * Makes the deal. A request with the token of an earlier one must ask for the same deal; it waits for that deal and
   * returns it. Throws GatewayError.
   */
  async make(ask: DealAsk): Promise<CompleteDeal> {
    const { account, token } = ask
    if (token === undefined) return this.#start(ask).made
    for (;;) {
      const row = await this.#context.db.read.deals.findByToken(account, token)
      // No other request runs from here to the start.
      const underway = this.#byToken.get(tokenOf(account, token))
      if (row === undefined || row.reference === underway?.reference) {
        if (underway !== undefined) mustAskTheSame(underway.ask, ask)
        const made = await this.#outcome(underway ?? this.#start(ask), account, token)
        if (made !== undefined) return made
        continue
      }
      mustAskTheSame(row, ask)
      if (isComplete(row)) return row
      if (await this.#isElsewhere(row)) await this.#context.tasks.run((signal) => delay(POLL_MS, undefined, { signal }))
      else await this.#reconcile(row)
    }
  }

  /**
   * Resolves with undefined, and not with a failure, when the token has another deal: another process has begun it
   * first, or has given up the deal of this one, which was stopped, and makes its own.
   */
  async #outcome({ made, reference }: Underway, account: number, token: string): Promise<CompleteDeal | undefined> {
    try {
      return await made
    } catch (error) {
      const row = await this.#context.db.read.deals.findByToken(account, token)
      if (error instanceof TokenInUse || (row !== undefined && row.reference !== reference)) return undefined
      throw error
    }
  }

  /** True while another process makes the deal. */
  #isElsewhere({ run }: DealRow): Promise<boolean> {
    return this.#context.run.isElsewhere(this.#context.db.read, run)
  }

  /** Returns undefined when the account has no deal with this token pending or made. */
  async progress(account: number, token: string): Promise<Progress | undefined> {
    const row = await this.#context.db.read.deals.findByToken(account, token)
    const underway = this.#byToken.get(tokenOf(account, token))
    if (underway !== undefined && (row === undefined || row.reference === underway.reference)) return underway.progress
    if (row === undefined) return undefined
    const { bytes: bytesTotal, files: filesTotal } = row
    if (!isComplete(row) && (await this.#isElsewhere(row))) {
      return row.progress === null ? LISTING : JSON.parse(row.progress)
    }
    if (!isComplete(row)) return { phase: 'Settling', bytesDone: 0, bytesTotal, filesDone: 0, filesTotal }
    return { phase: 'Done', bytesDone: bytesTotal, bytesTotal, filesDone: filesTotal, filesTotal }
  }

  /**
   * Finds the outcomes of deals that a crash interrupted. Retries later for those that are still unknown. Several
   * processes may do so for one deal: they find the same.
   */
  async recover(): Promise<void> {
    for (const row of await this.#context.db.read.deals.left(this.#context.run.name)) {
      if (row.dropped || row.network === this.#context.network.kind) this.#unreconciled.set(row.id, row)
    }
    await this.#settleAll()
  }

  #start(ask: DealAsk): Underway {
    const publish = publisher(this.#context.db, 'deals')
    const reference = newGeneration(this.#context.clock)
    const made = this.#context.tasks
      .run((signal) =>
        makeDeal(
          this.#context,
          ask,
          reference,
          signal,
          ({ id, files: filesTotal }, progress) => {
            underway.progress = { ...progress, filesTotal }
            publish(id, underway.progress)
          },
          this.#leftovers,
        ),
      )
      .finally(() => {
        if (ask.token !== undefined) this.#byToken.delete(tokenOf(ask.account, ask.token))
      })
    const underway: Underway = { ask, reference, made, progress: LISTING }
    if (ask.token !== undefined) this.#byToken.set(tokenOf(ask.account, ask.token), underway)
    return underway
  }

  async #settleAll(): Promise<void> {
    const { db, holds, log } = this.#context
    for (const [reference, bucket] of this.#begun) {
      try {
        // The lock waits for the end of a transaction that still goes on.
        const locks = [bucketLock({ id: bucket })]
        const row = await db.transaction(({ deals }) => deals.findByReference(reference), { locks })
        await holds.release(bucket, reference)
        if (row !== undefined) this.#unreconciled.set(row.id, row)
        this.#begun.delete(reference)
      } catch (err) {
        log.warn({ err }, 'Could not find out yet whether a deal was begun; trying again.')
      }
    }
    for (const row of this.#unreconciled.values()) {
      try {
        await this.#reconcile(row)
      } catch (error) {
        log.warn({ err: error }, 'Could not find out the outcome of a deal yet; trying again.')
      }
    }
    if (this.#unreconciled.size + this.#begun.size > 0) this.#retryLater()
  }

  #retryLater(): void {
    if (this.#retrying) return
    this.#retrying = true
    const retry = async (signal: AbortSignal): Promise<void> => {
      await delay(this.#context.limits.reconcileMs, undefined, { signal, ref: false })
      this.#retrying = false
      await this.#settleAll()
    }
    // Ends only when the gateway stops.
    this.#context.tasks.run(retry).catch(() => {})
  }

  /** Throws GatewayError NetworkUnavailable. */
  #reconcile(row: DealRow): Promise<void> {
    const settling = this.#settling.get(row.id)
    if (settling !== undefined) return settling
    const started = this.#find(row).finally(() => this.#settling.delete(row.id))
    this.#settling.set(row.id, started)
    return started
  }

  async #find({ id, reference, network: kind, dropped }: DealRow): Promise<void> {
    const { network, db, log } = this.#context
    if (dropped) {
      await dropDeal(this.#context, id)
      this.#unreconciled.delete(id)
      return
    }
    if (kind !== network.kind) {
      const value = `Only the storage network of kind ${kind} knows the outcome of the deal, and another one is in use: start the gateway with that network.`
      throw new GatewayError('NetworkUnavailable', { value })
    }
    try {
      // Its process may only have been stopped: it must not make the deal later.
      const record = await network.settle(reference)
      if (record === undefined) await dropDeal(this.#context, id)
      else await db.transaction(({ deals }) => deals.complete(id, record))
      this.#unreconciled.delete(id)
      log.info({ reference, made: record !== undefined }, 'Found out the outcome of an interrupted deal.')
    } catch (error) {
      if (!(error instanceof NetworkError)) throw error
      throw new GatewayError('NetworkUnavailable', { value: error.message }, error)
    }
  }
}

/** Tells other processes of the progress of what has this id, now and then. */
export function publisher(
  db: Database<GatewayTables>,
  table: 'deals' | 'offlineTasks',
): (id: number, progress: Progress) => void {
  let next = 0
  return (id, progress) => {
    if (!db.shared || performance.now() < next) return
    next = performance.now() + PUBLISH_MS
    const text = JSON.stringify(progress)
    // What is not said now is said by the next.
    db.transaction((tables) => tables[table].setProgress(id, text), { locks: [] }).catch(() => {})
  }
}

/** Each account has its own tokens. */
function tokenOf(account: number, token: string): string {
  return `${account} ${token}`
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

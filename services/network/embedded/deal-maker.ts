import { DAY_MS } from '../../../common/time.js'
import { Clock } from '../../clock.js'
import { type Database, tableOf } from '../../store/database.js'
import { untilKnown } from '../../store/until-known.js'
import { checkTerms, type DealRecord, type DealSchedule, reasonToReject } from '../deal-record.js'
import type { DealTable } from '../deal-table.js'
import type { EpochClock } from '../epoch-clock.js'
import { type DealRequest, type DealTerms, NetworkError } from '../network.js'
import type { DealPacker, PackedDeal } from '../packing.js'
import { type DealFacts, draftDeal } from '../proposal.js'
import type { Wallets } from '../wallet.js'
import type { Cars, LooseCarTable } from './cars.js'
import type { ProviderTerms } from './catalogue.js'
import { applyFaults, type Fault, type FaultTable } from './control.js'
import type { ProviderTable } from './providers.js'

/** References of which no deal will be made, though a process may be at work on one. */
export const givenUpSchema = `
  CREATE TABLE given_up (
    reference TEXT PRIMARY KEY
  ) STRICT, WITHOUT ROWID;
`

/** `since`: when that was, ms since 1970; 0 for an earlier version. */
export const givenUpTimeSchema = `
  ALTER TABLE given_up ADD COLUMN since INTEGER NOT NULL DEFAULT 0;
  UPDATE given_up SET since = unixepoch() * 1000;
`

/** Time for which a reference is remembered, ms: longer than any process is stopped, and then goes on. */
const REMEMBERED_MS = 30 * DAY_MS

/** Call its methods inside the transaction that looks for the deal. */
export class GivenUpTable extends tableOf({
  add: 'INSERT INTO given_up (reference, since) VALUES (?, ?) ON CONFLICT (reference) DO NOTHING',
  forget: 'DELETE FROM given_up WHERE since > 0 AND since < ?',
  find: 'SELECT 1 FROM given_up WHERE reference = ?',
}) {
  /** Forgets old ones. @param now ms since 1970 */
  async add(reference: string, now: number): Promise<void> {
    await this.sql.forget.run(now - REMEMBERED_MS)
    await this.sql.add.run(reference, now)
  }

  async has(reference: string): Promise<boolean> {
    return (await this.sql.find.get(reference)) !== undefined
  }
}

interface DealMakerDeps {
  readonly db: Database<{
    readonly deals: DealTable
    readonly looseCars: LooseCarTable
    readonly givenUp: GivenUpTable
    readonly faults: FaultTable
  }>
  readonly packer: DealPacker
  readonly proposer: Proposer
  readonly cars: Cars
}

/**
 * Makes deals: packs, proposes, delivers and records them. The record is written last, in one transaction; nothing
 * counts without it.
 */
export class DealMaker {
  readonly #deps: DealMakerDeps

  constructor(deps: DealMakerDeps) {
    this.#deps = deps
  }

  /**
   * Throws NetworkError NoSuchProvider, ProviderOffline or TermsRefused, and the reason of `signal`. A failed deal
   * leaves nothing behind.
   */
  async make(request: DealRequest, signal: AbortSignal): Promise<DealRecord> {
    const price = checkTerms(request.terms)
    await this.#deps.proposer.willing(request.terms.minerId)
    return this.#deps.packer.run(request, (packed) => this.#send(request, price, packed, signal), signal)
  }

  /** @param price price in the terms, attoFIL */
  async #send(
    request: DealRequest,
    price: bigint,
    { car, piece }: PackedDeal,
    signal: AbortSignal,
  ): Promise<DealRecord> {
    const { reference, terms, wallet } = request
    const { db, proposer, cars } = this.#deps
    signal.throwIfAborted()
    // Packing may have taken hours.
    const provider = await proposer.willing(terms.minerId)
    const rejection = proposer.rejection(provider, terms, price, piece.pieceSize)
    const custody = rejection === undefined ? await cars.deliver(car.file, terms.minerId) : undefined
    let kept: DealRecord | undefined
    try {
      if (custody !== undefined) await applyFaults(cars.path(custody), terms.minerId, db.read.faults)
      const steps = proposer.schedule(provider)
      const startEpoch = steps.activeEpoch
      const schedule = { ...steps, startEpoch, endEpoch: startEpoch + terms.duration }
      const { dataCid, size: carSize } = car
      const facts = { reference, terms, price, dataCid, carSize, piece, schedule, rejection, waiting: false, custody }
      const record = await proposer.draft(facts, wallet)
      signal.throwIfAborted()
      kept = await untilKnown(() => this.#record(record), { signal })
      return kept
    } finally {
      // Another process may have made the deal meanwhile.
      if (custody !== undefined && kept?.custody !== custody) cars.discard(custody)
    }
  }

  /** Records a deal unless there is one of its reference, and returns the one that is there. */
  #record(record: DealRecord): Promise<DealRecord> {
    return this.#deps.db.transaction(async ({ deals, looseCars, givenUp }) => {
      const found = await deals.find(record.reference)
      if (found !== undefined) return found
      if (await givenUp.has(record.reference)) {
        throw new NetworkError('TermsRefused', 'The deal was given up before it was made.')
      }
      if (record.custody !== undefined) await looseCars.settle(record.custody)
      return deals.addOnce(record)
    })
  }
}

/** Factor by which a slow provider takes longer for each step. */
const SLOWNESS = 10

/** A provider as it is when it is asked. */
interface ProviderState extends ProviderTerms {
  readonly faults: ReadonlySet<Fault>
}

interface ProposerTables {
  readonly providers: ProviderTable
  readonly faults: FaultTable
}

/** What providers say to deals, and the records of deals that are proposed to them now. */
export class Proposer {
  readonly #db: Database<ProposerTables>
  readonly #epochs: EpochClock
  readonly #wallets: Wallets
  readonly #clock = new Clock()

  constructor(db: Database<ProposerTables>, epochs: EpochClock, wallets: Wallets) {
    this.#db = db
    this.#epochs = epochs
    this.#wallets = wallets
  }

  /**
   * Returns the provider. Throws NetworkError when it does not exist or is offline.
   * @param tables of a transaction that is to see the provider
   */
  async willing(minerId: string, tables: ProposerTables = this.#db.read): Promise<ProviderState> {
    const provider = await tables.providers.find(minerId)
    if (provider === undefined) {
      throw new NetworkError(
        'NoSuchProvider',
        `There is no storage provider "${minerId.slice(0, 64)}" in this network.`,
      )
    }
    const faults = await tables.faults.of(minerId)
    if (faults.has('offline')) {
      throw new NetworkError(
        'ProviderOffline',
        `Storage provider ${minerId} is offline. Choose another one or try again later.`,
      )
    }
    return { ...provider, faults }
  }

  /**
   * Why a provider rejects a deal, as a sentence; undefined when it accepts.
   * @param price price in the terms, attoFIL
   */
  rejection(provider: ProviderState, terms: DealTerms, price: bigint, pieceSize: number): string | undefined {
    return provider.faults.has('rejects')
      ? `Provider ${provider.minerId} rejects the deal: it takes no new deals at present.`
      : reasonToReject(provider, terms, price, pieceSize)
  }

  async draft(facts: Omit<DealFacts, 'timeStamp'>, wallet: string | undefined): Promise<DealRecord> {
    return draftDeal({ ...facts, timeStamp: Number(this.#clock.now() / 1000n) }, await this.#wallets.of(wallet))
  }

  /** The epochs of a deal whose data the provider has from now on. */
  schedule(provider: ProviderState): Pick<DealSchedule, 'proposedEpoch' | 'acceptEpoch' | 'sealEpoch' | 'activeEpoch'> {
    const pace = provider.faults.has('slow') ? SLOWNESS : 1
    const proposedEpoch = this.#epochs.epoch()
    const acceptEpoch = proposedEpoch + provider.acceptEpochs * pace
    const sealEpoch = acceptEpoch + provider.publishEpochs * pace
    return { proposedEpoch, acceptEpoch, sealEpoch, activeEpoch: sealEpoch + provider.sealEpochs * pace }
  }
}

import type { Database } from '../../store/database.js'
import { untilKnown } from '../../store/until-known.js'
import { checkTerms, type DealRecord, madeDeal } from '../deal-record.js'
import { ByReference, type DealTable } from '../deal-table.js'
import type { EpochClock } from '../epoch-clock.js'
import type { Lifetime } from '../expiry.js'
import {
  type Commit,
  type MadeDeal,
  NetworkError,
  type OfflineDeals,
  type PackedCar,
  type ProposalRequest,
} from '../network.js'
import type { DealRegistry } from '../proposal.js'
import type { Cars, LooseCarTable } from './cars.js'
import { applyFaults, type FaultTable } from './control.js'
import type { Proposer } from './deal-maker.js'
import type { ProviderTable } from './providers.js'

/** A week of usual epochs: a provider has as long to get the data and to seal them. */
const LEAD_EPOCHS = 20_160
/** Most deals that are named as waiting for one piece. */
const MAX_WAITING = 100

interface OfflineTables {
  readonly deals: DealTable
  readonly looseCars: LooseCarTable
  readonly providers: ProviderTable
  readonly faults: FaultTable
}

interface OfflineDealsDeps {
  readonly db: Database<OfflineTables>
  readonly registry: DealRegistry
  readonly proposer: Proposer
  readonly cars: Cars
  readonly epochs: EpochClock
  readonly lifetime: Lifetime
  readonly commit: Commit
}

/** Proposals that wait for their data, and the import of these. Each is one transaction. */
export class EmbeddedOfflineDeals implements OfflineDeals {
  readonly #deps: OfflineDealsDeps
  readonly #imports = new ByReference<DealRecord>()

  constructor(deps: OfflineDealsDeps) {
    this.#deps = deps
  }

  async propose(request: ProposalRequest): Promise<MadeDeal> {
    const { registry, lifetime } = this.#deps
    lifetime.check()
    const signal = lifetime.until(request.signal)
    return registry.deal(request.reference, () => this.#propose(request, signal), signal)
  }

  async waitingFor(minerId: string, pieceCid: string): Promise<MadeDeal[]> {
    const { lifetime, db, epochs } = this.#deps
    lifetime.check()
    return (await db.read.deals.waitingFor(minerId, pieceCid, epochs.epoch(), MAX_WAITING)).map(madeDeal)
  }

  async knows(minerId: string, dealCid: string): Promise<boolean> {
    const { lifetime, registry } = this.#deps
    lifetime.check()
    return (await registry.findByCid(dealCid))?.terms.minerId === minerId
  }

  async inspect(file: string, signal?: AbortSignal): Promise<PackedCar> {
    const { lifetime, commit } = this.#deps
    lifetime.check()
    const until = lifetime.until(signal)
    // The reader of CARs and its libraries are much code, and few servers import deals.
    const { wholeCar } = await import('../pack/car/car-reader.js')
    const { dataCid, size: carSize } = await wholeCar(file, until)
    return { file, dataCid, carSize, ...(await commit(file, { signal: until })) }
  }

  async import(dealCid: string, car: PackedCar, signal?: AbortSignal): Promise<number> {
    const { lifetime, registry } = this.#deps
    lifetime.check()
    const until = lifetime.until(signal)
    const imported = async (): Promise<DealRecord | undefined> => {
      const record = await registry.record(dealCid)
      return record.waiting ? undefined : record
    }
    return (await this.#imports.run(dealCid, imported, () => this.#import(dealCid, car, until), until)).activeEpoch
  }

  idle(): Promise<void> {
    return this.#imports.idle()
  }

  async #propose({ reference, terms, wallet, car }: ProposalRequest, signal: AbortSignal): Promise<DealRecord> {
    const { db, proposer } = this.#deps
    const price = checkTerms(terms)
    const provider = await proposer.willing(terms.minerId)
    if (!provider.offlineDealAvailable) {
      throw new NetworkError('TermsRefused', `Provider ${terms.minerId} takes no offline deals.`)
    }
    const rejection = proposer.rejection(provider, terms, price, car.pieceSize)
    if (rejection !== undefined) throw new NetworkError('TermsRefused', rejection)
    const steps = proposer.schedule(provider)
    const startEpoch = steps.activeEpoch + LEAD_EPOCHS
    const schedule = { ...steps, startEpoch, activeEpoch: startEpoch, endEpoch: startEpoch + terms.duration }
    const { dataCid, carSize, pieceCid, pieceSize } = car
    const piece = { pieceCid, pieceSize }
    const facts = { reference, terms, price, dataCid, carSize, piece, schedule, rejection, waiting: true }
    const record = await proposer.draft({ ...facts, custody: undefined }, wallet)
    return untilKnown(() => db.transaction(({ deals }) => deals.addOnce(record)), { signal })
  }

  async #import(dealCid: string, car: PackedCar, signal: AbortSignal): Promise<DealRecord> {
    const { db, registry, proposer, cars } = this.#deps
    const { pieceCid, carSize, startEpoch, terms } = await registry.record(dealCid)
    const { minerId } = terms
    /** The epochs of a deal that the provider imports now. */
    const scheduled = async (tables: OfflineTables) => {
      const provider = await proposer.willing(minerId, tables)
      if (provider.faults.has('rejects')) throw refusal(`Provider ${minerId} takes no new deals at present.`)
      const schedule = proposer.schedule(provider)
      if (schedule.activeEpoch <= startEpoch) return schedule
      throw refusal(`The CAR comes too late to be sealed at epoch ${startEpoch}, at which the deal starts.`)
    }
    if (car.pieceCid !== pieceCid || car.carSize !== carSize) {
      throw refusal(`The CAR is not the piece ${pieceCid} of the deal.`)
    }
    await scheduled(db.read)
    const custody = await cars.take(car.file, minerId)
    let kept: DealRecord | undefined
    try {
      await applyFaults(cars.path(custody), minerId, db.read.faults)
      signal.throwIfAborted()
      // Copying may have taken hours, and another process may have imported the data meanwhile.
      const receive = async (tables: OfflineTables): Promise<void> => {
        if (!(await tables.deals.findByCid(dealCid))?.waiting) return
        await tables.deals.receive(dealCid, custody, await scheduled(tables))
        await tables.looseCars.settle(custody)
      }
      await untilKnown(() => db.transaction(receive), { signal })
      kept = await untilKnown(() => registry.record(dealCid), { signal })
      return kept
    } finally {
      if (kept?.custody !== custody) cars.discard(custody)
    }
  }
}

function refusal(message: string): NetworkError {
  return new NetworkError('DataRefused', message)
}

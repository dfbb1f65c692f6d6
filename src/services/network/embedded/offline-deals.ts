import type { Writer } from '../../database.js'
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
import { wholeCar } from '../pack/car/car-reader.js'
import type { DealBook } from '../proposal.js'
import type { Cars } from './cars.js'
import { applyFaults, type Faults } from './control.js'
import type { Proposer } from './deal-maker.js'

/** A week of usual epochs: a provider has as long to get the data and to seal them. */
const LEAD_EPOCHS = 20_160
/** Most deals that are named as waiting for one piece. */
const MAX_WAITING = 100

interface OfflineDealsDeps {
  readonly book: DealBook
  readonly proposer: Proposer
  readonly faults: Faults
  readonly cars: Cars
  readonly deals: DealTable
  readonly writer: Writer
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
    const { book, lifetime } = this.#deps
    lifetime.check()
    return book.deal(request.reference, () => this.#propose(request), lifetime.until(request.signal))
  }

  waitingFor(minerId: string, pieceCid: string): MadeDeal[] {
    const { lifetime, deals, epochs } = this.#deps
    lifetime.check()
    return deals.waitingFor(minerId, pieceCid, epochs.epoch(), MAX_WAITING).map(madeDeal)
  }

  knows(minerId: string, dealCid: string): boolean {
    this.#deps.lifetime.check()
    return this.#deps.deals.findByCid(dealCid)?.terms.minerId === minerId
  }

  async inspect(file: string, signal?: AbortSignal): Promise<PackedCar> {
    const { lifetime, commit } = this.#deps
    lifetime.check()
    const until = lifetime.until(signal)
    const { dataCid, size: carSize } = await wholeCar(file, until)
    return { file, dataCid, carSize, ...(await commit(file, { signal: until })) }
  }

  async import(dealCid: string, car: PackedCar, signal?: AbortSignal): Promise<number> {
    const { lifetime, book } = this.#deps
    lifetime.check()
    const until = lifetime.until(signal)
    const imported = (): DealRecord | undefined => {
      const record = book.record(dealCid)
      return record.waiting ? undefined : record
    }
    return (await this.#imports.run(dealCid, imported, () => this.#import(book.record(dealCid), car, until), until))
      .activeEpoch
  }

  idle(): Promise<void> {
    return this.#imports.idle()
  }

  async #propose({ reference, terms, wallet, car }: ProposalRequest): Promise<DealRecord> {
    const { proposer, deals, writer } = this.#deps
    const price = checkTerms(terms)
    const provider = proposer.willing(terms.minerId)
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
    const record = proposer.draft({ ...facts, custody: undefined }, wallet)
    await writer.run(() => deals.add(record))
    return record
  }

  async #import(record: DealRecord, car: PackedCar, signal: AbortSignal): Promise<DealRecord> {
    const { book, proposer, faults, cars, deals, writer } = this.#deps
    const { dealCid, pieceCid, carSize, startEpoch } = record
    const { minerId } = record.terms
    const provider = proposer.willing(minerId)
    if (car.pieceCid !== pieceCid || car.carSize !== carSize) {
      throw refusal(`The CAR is not the piece ${pieceCid} of the deal.`)
    }
    if (faults.has(minerId, 'rejects')) throw refusal(`Provider ${minerId} takes no new deals at present.`)
    if (proposer.schedule(provider).activeEpoch > startEpoch) {
      throw refusal(`The CAR comes too late to be sealed at epoch ${startEpoch}, at which the deal starts.`)
    }
    const custody = await cars.take(car.file, minerId)
    try {
      await applyFaults(cars.path(custody), minerId, faults)
      signal.throwIfAborted()
      await writer.run(() => deals.receive(dealCid, custody, proposer.schedule(provider)))
    } catch (error) {
      cars.discard(custody)
      throw error
    }
    return book.record(dealCid)
  }
}

function refusal(message: string): NetworkError {
  return new NetworkError('DataRefused', message)
}

import type { Writer } from '../../database.js'
import type { DealRecord } from '../deals/deal-record.js'
import type { DealTable } from '../deals/deal-table.js'
import { checkTerms } from '../deals/terms.js'
import type { DealRequest } from '../network.js'
import type { DealPacker, PackedDeal } from '../pack-deal.js'
import type { Cars } from './cars.js'
import { applyFaults } from './damage.js'
import type { Faults } from './faults.js'
import type { Proposer } from './proposer.js'

export interface DealMakerParts {
  readonly packer: DealPacker
  readonly proposer: Proposer
  readonly faults: Faults
  readonly cars: Cars
  readonly deals: DealTable
  readonly writer: Writer
}

/**
 * Makes deals: packs, proposes, delivers and records them. The record is written last, in one transaction; nothing
 * counts without it.
 */
export class DealMaker {
  readonly #parts: DealMakerParts

  constructor(parts: DealMakerParts) {
    this.#parts = parts
  }

  /**
   * Throws NetworkError NoSuchProvider, ProviderOffline or TermsRefused, and the reason of `signal`. A failed deal
   * leaves nothing behind.
   */
  async make(request: DealRequest, signal: AbortSignal): Promise<DealRecord> {
    const price = checkTerms(request.terms)
    this.#parts.proposer.willing(request.terms.minerId)
    return this.#parts.packer.run(request, (packed) => this.#send(request, price, packed, signal), signal)
  }

  /** @param price price in the terms, attoFIL */
  async #send(
    request: DealRequest,
    price: bigint,
    { car, piece }: PackedDeal,
    signal: AbortSignal,
  ): Promise<DealRecord> {
    const { reference, terms, wallet } = request
    const { proposer, cars, faults, deals, writer } = this.#parts
    signal.throwIfAborted()
    // Packing may have taken hours.
    const provider = proposer.willing(terms.minerId)
    const rejection = proposer.rejection(provider, terms, price, piece.pieceSize)
    const custody = rejection === undefined ? await cars.deliver(car.file, terms.minerId) : undefined
    try {
      if (custody !== undefined) await applyFaults(cars.path(custody), terms.minerId, faults)
      const steps = proposer.schedule(provider)
      const startEpoch = steps.activeEpoch
      const schedule = { ...steps, startEpoch, endEpoch: startEpoch + terms.duration }
      const { dataCid, size: carSize } = car
      const facts = { reference, terms, price, dataCid, carSize, piece, schedule, rejection, waiting: false, custody }
      const record = proposer.draft(facts, wallet)
      signal.throwIfAborted()
      await writer.run(() => deals.add(record))
      return record
    } catch (error) {
      if (custody !== undefined) cars.discard(custody)
      throw error
    }
  }
}

import type { Clock } from '../../clock.js'
import type { Writer } from '../../database.js'
import type { DealRecord, DealSchedule } from '../deals/deal-record.js'
import type { DealTable } from '../deals/deal-table.js'
import { draftDeal } from '../deals/draft-deal.js'
import { checkTerms, reasonToReject } from '../deals/terms.js'
import { type DealRequest, NetworkError } from '../network.js'
import type { DealPacker, PackedDeal } from '../pack-deal.js'
import type { EpochClock } from '../units/epoch-clock.js'
import type { Wallets } from '../wallets.js'
import type { Cars } from './cars.js'
import type { ProviderTerms } from './catalogue.js'
import { applyFaults } from './damage.js'
import type { Faults } from './faults.js'
import type { Providers } from './providers.js'

/** Factor by which a slow provider takes longer for each step. */
const SLOWNESS = 10

export interface DealMakerParts {
  readonly packer: DealPacker
  readonly providers: Providers
  readonly faults: Faults
  readonly cars: Cars
  readonly deals: DealTable
  readonly writer: Writer
  readonly epochs: EpochClock
  readonly clock: Clock
  readonly wallets: Wallets
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
    this.#willing(request.terms.minerId)
    return this.#parts.packer.run(request, (packed) => this.#send(request, price, packed, signal), signal)
  }

  /** Returns the provider. Throws NetworkError when it does not exist or is offline. */
  #willing(minerId: string): ProviderTerms {
    const provider = this.#parts.providers.find(minerId)
    if (provider === undefined) {
      throw new NetworkError(
        'NoSuchProvider',
        `There is no storage provider "${minerId.slice(0, 64)}" in this network.`,
      )
    }
    if (this.#parts.faults.has(minerId, 'offline')) {
      throw new NetworkError(
        'ProviderOffline',
        `Storage provider ${minerId} is offline. Choose another one or try again later.`,
      )
    }
    return provider
  }

  /** @param price price in the terms, attoFIL */
  async #send(
    request: DealRequest,
    price: bigint,
    { car, piece }: PackedDeal,
    signal: AbortSignal,
  ): Promise<DealRecord> {
    const { reference, terms } = request
    const { cars, faults, deals, writer, wallets, clock } = this.#parts
    signal.throwIfAborted()
    // Packing may have taken hours.
    const provider = this.#willing(terms.minerId)
    const rejection = faults.has(terms.minerId, 'rejects')
      ? `Provider ${terms.minerId} rejects the deal: it takes no new deals at present.`
      : reasonToReject(provider, terms, price, piece.pieceSize)
    const custody = rejection === undefined ? await cars.deliver(car.file, terms.minerId) : undefined
    try {
      if (custody !== undefined) await applyFaults(cars.path(custody), terms.minerId, faults)
      const schedule = this.#schedule(provider, terms.duration)
      const timeStamp = Number(clock.now() / 1000n)
      const { dataCid, size: carSize } = car
      const facts = { reference, terms, price, dataCid, carSize, piece, schedule, timeStamp, rejection, custody }
      const record = draftDeal(facts, wallets.of(request.wallet))
      signal.throwIfAborted()
      await writer.run(() => deals.add(record))
      return record
    } catch (error) {
      if (custody !== undefined) cars.discard(custody)
      throw error
    }
  }

  #schedule(provider: ProviderTerms, duration: number): DealSchedule {
    const pace = this.#parts.faults.has(provider.minerId, 'slow') ? SLOWNESS : 1
    const proposedEpoch = this.#parts.epochs.epoch()
    const acceptEpoch = proposedEpoch + provider.acceptEpochs * pace
    const sealEpoch = acceptEpoch + provider.publishEpochs * pace
    const startEpoch = sealEpoch + provider.sealEpochs * pace
    return { proposedEpoch, acceptEpoch, sealEpoch, startEpoch, endEpoch: startEpoch + duration }
  }
}

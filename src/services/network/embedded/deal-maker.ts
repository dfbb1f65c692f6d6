import type { Clock } from '../../clock.js'
import type { Writer } from '../../database.js'
import type { DealRecord, DealSchedule } from '../deal-record.js'
import type { DealTable } from '../deal-table.js'
import { draftDeal } from '../draft-deal.js'
import type { EpochClock } from '../epoch-clock.js'
import { type DealRequest, NetworkError } from '../network.js'
import type { DealPacker, PackedDeal } from '../pack-deal.js'
import { checkTerms, reasonToReject } from '../terms.js'
import type { Wallet } from '../wallet.js'
import type { Cars } from './cars.js'
import type { ProviderTerms } from './catalogue.js'
import { applyFaults } from './damage.js'
import type { Faults } from './faults.js'
import type { Providers } from './providers.js'

/** How much longer a slow provider takes for each step. */
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
  readonly wallet: Wallet
}

/** Makes deals: has them packed, proposes, hands over and records. The record comes last, in one transaction; what is there without it counts for nothing. */
export class DealMaker {
  readonly #parts: DealMakerParts

  constructor(parts: DealMakerParts) {
    this.#parts = parts
  }

  /** Throws NetworkError NoSuchProvider, ProviderOffline or TermsRefused, and what `signal` says. Whatever it throws, nothing remains. */
  async make(request: DealRequest, signal: AbortSignal): Promise<DealRecord> {
    const price = checkTerms(request.terms)
    this.#willing(request.terms.minerId)
    return this.#parts.packer.run(request, (packed) => this.#send(request, price, packed, signal), signal)
  }

  /** The provider, when there is such a one and it can be reached. */
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

  /** `price` of the terms, attoFIL. */
  async #send(
    request: DealRequest,
    price: bigint,
    { car, piece }: PackedDeal,
    signal: AbortSignal,
  ): Promise<DealRecord> {
    const { reference, terms } = request
    const { cars, faults, deals, writer, wallet, clock } = this.#parts
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
      const record = draftDeal(facts, wallet)
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

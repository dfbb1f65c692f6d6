import type { Clock } from '../../clock.js'
import type { Writer } from '../../database.js'
import { checkTerms, type DealRecord, type DealSchedule, reasonToReject } from '../deal-record.js'
import type { DealTable } from '../deal-table.js'
import type { EpochClock } from '../epoch-clock.js'
import { type DealRequest, type DealTerms, NetworkError } from '../network.js'
import type { DealPacker, PackedDeal } from '../packing.js'
import { type DealFacts, draftDeal } from '../proposal.js'
import type { Wallets } from '../wallet.js'
import type { Cars } from './cars.js'
import type { ProviderTerms } from './catalogue.js'
import { applyFaults, type Faults } from './control.js'
import type { Providers } from './providers.js'

interface DealMakerDeps {
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
    this.#deps.proposer.willing(request.terms.minerId)
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
    const { proposer, cars, faults, deals, writer } = this.#deps
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

/** Factor by which a slow provider takes longer for each step. */
const SLOWNESS = 10

interface ProposerDeps {
  readonly providers: Providers
  readonly faults: Faults
  readonly epochs: EpochClock
  readonly clock: Clock
  readonly wallets: Wallets
}

/** What providers say to deals, and the records of deals that are proposed to them now. */
export class Proposer {
  readonly #deps: ProposerDeps

  constructor(deps: ProposerDeps) {
    this.#deps = deps
  }

  /** Returns the provider. Throws NetworkError when it does not exist or is offline. */
  willing(minerId: string): ProviderTerms {
    const provider = this.#deps.providers.find(minerId)
    if (provider === undefined) {
      throw new NetworkError(
        'NoSuchProvider',
        `There is no storage provider "${minerId.slice(0, 64)}" in this network.`,
      )
    }
    if (this.#deps.faults.has(minerId, 'offline')) {
      throw new NetworkError(
        'ProviderOffline',
        `Storage provider ${minerId} is offline. Choose another one or try again later.`,
      )
    }
    return provider
  }

  /**
   * Why a provider rejects a deal, as a sentence; undefined when it accepts.
   * @param price price in the terms, attoFIL
   */
  rejection(provider: ProviderTerms, terms: DealTerms, price: bigint, pieceSize: number): string | undefined {
    const { minerId } = provider
    return this.#deps.faults.has(minerId, 'rejects')
      ? `Provider ${minerId} rejects the deal: it takes no new deals at present.`
      : reasonToReject(provider, terms, price, pieceSize)
  }

  draft(facts: Omit<DealFacts, 'timeStamp'>, wallet: string | undefined): DealRecord {
    const { clock, wallets } = this.#deps
    return draftDeal({ ...facts, timeStamp: Number(clock.now() / 1000n) }, wallets.of(wallet))
  }

  /** The epochs of a deal whose data the provider has from now on. */
  schedule(provider: ProviderTerms): Pick<DealSchedule, 'proposedEpoch' | 'acceptEpoch' | 'sealEpoch' | 'activeEpoch'> {
    const pace = this.#deps.faults.has(provider.minerId, 'slow') ? SLOWNESS : 1
    const proposedEpoch = this.#deps.epochs.epoch()
    const acceptEpoch = proposedEpoch + provider.acceptEpochs * pace
    const sealEpoch = acceptEpoch + provider.publishEpochs * pace
    return { proposedEpoch, acceptEpoch, sealEpoch, activeEpoch: sealEpoch + provider.sealEpochs * pace }
  }
}

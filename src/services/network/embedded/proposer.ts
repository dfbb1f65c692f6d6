import type { Clock } from '../../clock.js'
import type { DealRecord, DealSchedule } from '../deals/deal-record.js'
import { type DealFacts, draftDeal } from '../deals/draft-deal.js'
import { reasonToReject } from '../deals/terms.js'
import { type DealTerms, NetworkError } from '../network.js'
import type { EpochClock } from '../units/epoch-clock.js'
import type { Wallets } from '../wallets.js'
import type { ProviderTerms } from './catalogue.js'
import type { Faults } from './faults.js'
import type { Providers } from './providers.js'

/** Factor by which a slow provider takes longer for each step. */
const SLOWNESS = 10

export interface ProposerParts {
  readonly providers: Providers
  readonly faults: Faults
  readonly epochs: EpochClock
  readonly clock: Clock
  readonly wallets: Wallets
}

/** What providers say to deals, and the records of deals that are proposed to them now. */
export class Proposer {
  readonly #parts: ProposerParts

  constructor(parts: ProposerParts) {
    this.#parts = parts
  }

  /** Returns the provider. Throws NetworkError when it does not exist or is offline. */
  willing(minerId: string): ProviderTerms {
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

  /**
   * Why a provider rejects a deal, as a sentence; undefined when it accepts.
   * @param price price in the terms, attoFIL
   */
  rejection(provider: ProviderTerms, terms: DealTerms, price: bigint, pieceSize: number): string | undefined {
    const { minerId } = provider
    return this.#parts.faults.has(minerId, 'rejects')
      ? `Provider ${minerId} rejects the deal: it takes no new deals at present.`
      : reasonToReject(provider, terms, price, pieceSize)
  }

  /** Signs a proposal of now. */
  draft(facts: Omit<DealFacts, 'timeStamp'>, wallet: string | undefined): DealRecord {
    const { clock, wallets } = this.#parts
    return draftDeal({ ...facts, timeStamp: Number(clock.now() / 1000n) }, wallets.of(wallet))
  }

  /** The epochs of a deal whose data the provider has from now on. */
  schedule(provider: ProviderTerms): Pick<DealSchedule, 'proposedEpoch' | 'acceptEpoch' | 'sealEpoch' | 'activeEpoch'> {
    const pace = this.#parts.faults.has(provider.minerId, 'slow') ? SLOWNESS : 1
    const proposedEpoch = this.#parts.epochs.epoch()
    const acceptEpoch = proposedEpoch + provider.acceptEpochs * pace
    const sealEpoch = acceptEpoch + provider.publishEpochs * pace
    return { proposedEpoch, acceptEpoch, sealEpoch, activeEpoch: sealEpoch + provider.sealEpochs * pace }
  }
}

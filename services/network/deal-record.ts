import { formatFil, parseFil, priceOfPiece } from './fil.js'
import { type DealState, type DealTerms, type MadeDeal, NetworkError, type Packing, type Provider } from './network.js'

/**
 * The epochs at which a deal changes its state, all fixed when the provider has its data. While it waits for them, only
 * the first proposal, start and end mean anything.
 */
export interface DealSchedule {
  readonly proposedEpoch: number
  /** The provider accepts or rejects the deal. */
  readonly acceptEpoch: number
  /** The deal is published and sealing begins. */
  readonly sealEpoch: number
  readonly startEpoch: number
  /** The sector is sealed: not after `startEpoch`. */
  readonly activeEpoch: number
  readonly endEpoch: number
}

const WAITING = 'Provider state: StorageDealWaitingForData'

export interface DealRecord extends MadeDeal, DealSchedule {
  /** The signed proposal block. */
  readonly proposal: Uint8Array
  /** Why the provider rejects the deal, as a sentence; undefined when it accepts. */
  readonly rejection: string | undefined
  /** True while the provider waits for the data, which do not come through the network. */
  readonly waiting: boolean
  /**
   * Where the provider keeps the content, as a name of the network. Undefined when the provider never accepted it, or
   * has dropped it at the end of the deal.
   */
  readonly custody: string | undefined
}

/**
 * Returns the state of a deal at an epoch. It depends on the record alone, so no work is needed at the change of an
 * epoch.
 */
export function stateOf(deal: DealRecord, epoch: number): { readonly state: DealState; readonly message: string } {
  const { rejection, custody, acceptEpoch, endEpoch } = deal
  if (deal.waiting) return stateOfWaiting(deal, epoch)
  if (rejection === undefined && (custody === undefined || epoch >= endEpoch)) {
    return { state: 'StorageDealExpired', message: `The deal ended at epoch ${endEpoch}.` }
  }
  if (epoch < acceptEpoch) {
    const message = epoch <= deal.proposedEpoch ? WAITING : 'Provider state: StorageDealPublish'
    return { state: 'StorageDealCheckForAcceptance', message }
  }
  if (rejection !== undefined) return { state: 'StorageDealError', message: rejection }
  if (epoch < deal.sealEpoch) return { state: 'StorageDealPublish', message: '' }
  if (epoch < deal.activeEpoch) return { state: 'StorageDealSealing', message: '' }
  return { state: 'StorageDealActive', message: '' }
}

function stateOfWaiting({ terms, startEpoch }: DealRecord, epoch: number): ReturnType<typeof stateOf> {
  if (epoch < startEpoch) return { state: 'StorageDealCheckForAcceptance', message: WAITING }
  const message = `Provider ${terms.minerId} had no data when the deal was to start, at epoch ${startEpoch}.`
  return { state: 'StorageDealError', message }
}

/**
 * Returns the custody from which the provider delivers at this epoch. Throws NetworkError NotRetrievable when it does
 * not deliver.
 */
export function deliverableFrom(deal: DealRecord, epoch: number): string {
  const { state, message } = stateOf(deal, epoch)
  const { minerId, fastRetrieval } = deal.terms
  if (deal.custody === undefined || state === 'StorageDealError' || state === 'StorageDealExpired') {
    throw refusal(`Provider ${minerId} holds no content of this deal. ${message}`)
  }
  if (state === 'StorageDealCheckForAcceptance') {
    throw refusal(`Provider ${minerId} answers to this deal at epoch ${deal.acceptEpoch}; now it is ${epoch}.`)
  }
  if (!fastRetrieval && state !== 'StorageDealActive') {
    throw refusal(
      `This deal is one without fast retrieval: provider ${minerId} delivers from epoch ${deal.activeEpoch} on; now it is ${epoch}.`,
    )
  }
  return deal.custody
}

function refusal(message: string): NetworkError {
  return new NetworkError('NotRetrievable', message)
}

export function madeDeal(record: DealRecord): MadeDeal {
  const { reference, terms, walletAddress, dataCid, pieceCid, pieceSize, carSize } = record
  const { dealCid, startEpoch, endEpoch, timeStamp } = record
  return {
    reference,
    terms,
    walletAddress,
    dataCid,
    pieceCid,
    pieceSize,
    carSize,
    dealCid,
    startEpoch,
    endEpoch,
    timeStamp,
  }
}

export class DealReport {
  readonly #request: Packing
  #filesDone = 0

  constructor(request: Packing) {
    this.#request = request
  }

  packing(bytesDone: number, filesDone: number): void {
    const { bytesTotal } = this.#request
    this.#filesDone = filesDone
    this.#request.onProgress?.({ phase: 'Packing', bytesDone, bytesTotal, filesDone })
  }

  /** @param bytesTotal size of the CAR; applies from now on */
  next(phase: 'Committing' | 'Sending', bytesDone: number, bytesTotal: number): void {
    this.#request.onProgress?.({ phase, bytesDone, bytesTotal, filesDone: this.#filesDone })
  }

  /** The deal exists by now, so an error of the listener must not fail it. */
  done(bytesTotal: number): void {
    try {
      this.#request.onProgress?.({ phase: 'Done', bytesDone: bytesTotal, bytesTotal, filesDone: this.#filesDone })
    } catch {
      // Nothing is lost but the report.
    }
  }
}

/** Allowed durations of deals in epochs: 180 to 540 days of 2880 epochs. */
const MIN_DURATION = 518_400
const MAX_DURATION = 1_555_200

/** Longest duration that a proposal can encode: about 2000 years. */
const MAX_EPOCHS = 2 ** 31 - 1

type Ask = Pick<Provider, 'minerId' | 'price' | 'verifiedPrice' | 'minPieceSize' | 'maxPieceSize'>

/**
 * Returns the price in attoFIL per epoch for the whole piece. Throws NetworkError TermsRefused when the terms are
 * invalid for every provider.
 */
export function checkTerms(terms: DealTerms): bigint {
  const price = parseFil(terms.price)
  if (price === undefined) {
    throw new NetworkError(
      'TermsRefused',
      `The price "${terms.price.slice(0, 64)}" is not a decimal number in fil, such as 0.000005, with at most 18 digits behind the point.`,
    )
  }
  if (!Number.isSafeInteger(terms.duration) || terms.duration < 1 || terms.duration > MAX_EPOCHS) {
    throw new NetworkError('TermsRefused', 'The duration is not a whole number of epochs above 0.')
  }
  return price
}

/** Returns why a provider with this ask rejects the deal, as a sentence; undefined when it accepts. */
export function reasonToReject(ask: Ask, terms: DealTerms, price: bigint, pieceSize: number): string | undefined {
  const rejects = `Provider ${ask.minerId} rejects the deal:`
  if (terms.verifiedDeal && ask.verifiedPrice === '') return `${rejects} it takes no verified deals.`
  if (terms.duration < MIN_DURATION || terms.duration > MAX_DURATION) {
    return `${rejects} its duration of ${terms.duration} epochs is not within ${MIN_DURATION} to ${MAX_DURATION}.`
  }
  if (pieceSize < ask.minPieceSize) {
    return `${rejects} its piece of ${pieceSize} bytes is smaller than ${ask.minPieceSize}.`
  }
  if (pieceSize > ask.maxPieceSize) {
    return `${rejects} its piece of ${pieceSize} bytes is larger than ${ask.maxPieceSize}.`
  }
  const perGiB = terms.verifiedDeal ? ask.verifiedPrice : ask.price
  const asked = priceOfPiece(parseFil(perGiB) ?? 0n, pieceSize)
  if (price < asked) {
    return `${rejects} ${terms.price} fil per epoch is below ${formatFil(asked)}, its price for a piece of ${pieceSize} bytes.`
  }
  return undefined
}

import { type DealState, type MadeDeal, NetworkError } from '../network.js'

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

/** A deal as it is stored. */
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

/** Returns the part of a record that clients see. */
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

import { type DealState, type MadeDeal, NetworkError } from '../network.js'

/** The epochs at which a deal changes its state, all fixed when it is made. */
export interface DealSchedule {
  readonly proposedEpoch: number
  /** The provider accepts or rejects the deal. */
  readonly acceptEpoch: number
  /** The deal is published and sealing begins. */
  readonly sealEpoch: number
  readonly startEpoch: number
  readonly endEpoch: number
}

/** A deal as it is stored. */
export interface DealRecord extends MadeDeal, DealSchedule {
  /** The signed proposal block. */
  readonly proposal: Uint8Array
  /** Why the provider rejects the deal, as a sentence; undefined when it accepts. */
  readonly rejection: string | undefined
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
  if (rejection === undefined && (custody === undefined || epoch >= endEpoch)) {
    return { state: 'StorageDealExpired', message: `The deal ended at epoch ${endEpoch}.` }
  }
  if (epoch < acceptEpoch) {
    const providerState = epoch <= deal.proposedEpoch ? 'StorageDealWaitingForData' : 'StorageDealPublish'
    return { state: 'StorageDealCheckForAcceptance', message: `Provider state: ${providerState}` }
  }
  if (rejection !== undefined) return { state: 'StorageDealError', message: rejection }
  if (epoch < deal.sealEpoch) return { state: 'StorageDealPublish', message: '' }
  if (epoch < deal.startEpoch) return { state: 'StorageDealSealing', message: '' }
  return { state: 'StorageDealActive', message: '' }
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
      `This deal is one without fast retrieval: provider ${minerId} delivers from epoch ${deal.startEpoch} on; now it is ${epoch}.`,
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

import { type DealState, type MadeDeal, NetworkError } from './network.js'

/** When a deal comes to its next state, all decided when it is made. */
export interface DealSchedule {
  readonly proposedEpoch: number
  /** The provider answers. */
  readonly acceptEpoch: number
  /** It is published, sealing begins. */
  readonly sealEpoch: number
  readonly startEpoch: number
  readonly endEpoch: number
}

/** A deal as it is kept. */
export interface DealRecord extends MadeDeal, DealSchedule {
  /** The signed block. */
  readonly proposal: Uint8Array
  /** Why the provider does not take the deal, in a sentence. */
  readonly rejection: string | undefined
  /** Where the provider has the content, in the words of the network. Undefined when it never took it or has dropped it at the end of the deal. */
  readonly custody: string | undefined
}

/** Where a deal stands at an epoch; right after any time that nobody looked. */
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

/** The custody that the provider delivers from at this epoch. Throws NetworkError NotRetrievable when it does not deliver. */
export function deliverableFrom(deal: DealRecord, epoch: number): string {
  const { state, message } = stateOf(deal, epoch)
  const { minerId, fastRetrieval } = deal.terms
  if (deal.custody === undefined || state === 'StorageDealError' || state === 'StorageDealExpired') {
    throw refusal(`Provider ${minerId} has nothing of this deal. ${message}`)
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

/** What of a record concerns the client. */
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

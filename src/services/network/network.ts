/** A storage provider, in the task platform's words where it has them. Prices are decimals in fil per GiB and epoch. */
export interface Provider {
  readonly minerId: string
  readonly location: string
  readonly price: string
  /** '' where it takes no verified deals. */
  readonly verifiedPrice: string
  /** Bytes. */
  readonly minPieceSize: number
  readonly maxPieceSize: number
  readonly offlineDealAvailable: boolean
  readonly score: number
  readonly status: 'Active' | 'Offline'
  readonly contactInfo: string
}

/** What a deal is to be made on; all as the gateway's REST has them. */
export interface DealTerms {
  readonly minerId: string
  /** Decimal, fil per epoch for the whole piece. */
  readonly price: string
  /** Epochs. */
  readonly duration: number
  readonly verifiedDeal: boolean
  readonly fastRetrieval: boolean
}

/** A file that goes into a deal. */
export interface DealFile {
  /**
   * Names in the directories of the DAG, outermost first, each of them a name that a directory can hold and, among its siblings, only once. Empty for a deal
   * about one file, which then is the root itself.
   */
  readonly path: readonly string[]
  /** Bytes; content that is longer or shorter fails the deal. */
  readonly size: number
  content(): AsyncIterable<Uint8Array>
}

/** A file as it went into a deal: what is needed to get it back. */
export interface PackedFile {
  readonly path: readonly string[]
  readonly size: number
  /** Root of the file's own DAG. */
  readonly cid: string
}

export type DealPhase = 'Packing' | 'Committing' | 'Sending' | 'Done'

export interface DealProgress {
  readonly phase: DealPhase
  /** Bytes packed, or, while committing, gone into the piece CID; `bytesTotal` is of the same. */
  readonly bytesDone: number
  readonly bytesTotal: number
  readonly filesDone: number
}

export interface DealRequest {
  /** Unique name that the caller gives: the same again answers what the first one did, and makes nothing new. At most 128 characters. */
  readonly reference: string
  readonly terms: DealTerms
  /** In the order that keeps memory flat: those of one directory together. Read once. */
  files(): AsyncIterable<DealFile>
  /** Bytes of all files together, for the progress. */
  readonly bytesTotal: number
  /** Called for each file once its CID is known, before `deal` resolves; awaited. */
  onFile(file: PackedFile): Promise<void> | void
  onProgress?(progress: DealProgress): void
  readonly signal?: AbortSignal
}

/** A deal that was made: durable, with the CAR at the provider. */
export interface MadeDeal {
  readonly reference: string
  readonly terms: DealTerms
  /** Address of the wallet that proposed and signed it. */
  readonly walletAddress: string
  readonly dataCid: string
  readonly pieceCid: string
  /** Padded, a power of two, bytes. */
  readonly pieceSize: number
  /** Bytes of the CAR. */
  readonly carSize: number
  /** CID of the signed proposal, a DAG-CBOR block. */
  readonly dealCid: string
  readonly startEpoch: number
  readonly endEpoch: number
  /** Microseconds since 1970. */
  readonly timeStamp: number
}

/** One of the words of go-fil-markets, such as `StorageDealActive`. */
export type DealState =
  | 'StorageDealCheckForAcceptance'
  | 'StorageDealPublish'
  | 'StorageDealSealing'
  | 'StorageDealActive'
  | 'StorageDealExpired'
  | 'StorageDealError'

export interface DealStatus extends MadeDeal {
  readonly state: DealState
  /** Why, in a sentence; '' when there is nothing to say. */
  readonly message: string
  /** Whether the provider still has the content could not be asked: this is the state that the deal should be in. Says why in `message`. */
  readonly unconfirmed?: boolean
  /** The epoch now. */
  readonly epoch: number
}

/** Why the network did not do what it was asked for. `message` is meant for the client. */
export class NetworkError extends Error {
  override readonly name = 'NetworkError'
  /**
   * `NoSuchProvider`, `ProviderOffline`, `TermsRefused`: nothing was made, nothing is owed. `NoSuchDeal`. `NotRetrievable`: this provider cannot deliver these
   * bytes (offline, lost, not yet or no longer held, not what the CID says). `Unavailable`: the network itself cannot be reached; it may be asked again.
   */
  readonly code: 'NoSuchProvider' | 'ProviderOffline' | 'TermsRefused' | 'NoSuchDeal' | 'NotRetrievable' | 'Unavailable'
  constructor(code: NetworkError['code'], message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}

/** A decentralized storage network as the gateway sees it: the embedded one, or a Kubo node. Every method may throw NetworkError. */
export interface Network {
  readonly kind: 'embedded' | 'kubo'
  /** Address of the gateway's wallet. */
  readonly wallet: string
  readonly epochSeconds: number
  epoch(): number
  providers(): Promise<readonly Provider[]>
  /**
   * Packs the files into a CAR, makes and signs the proposal and gives it to the provider. Memory does not grow with size or number of files beyond a stated
   * bound per file. Durable when it resolves. Nothing is made when it rejects, and nothing is left on the disk.
   */
  deal(request: DealRequest): Promise<MadeDeal>
  /** The deal that was made under this reference, also in an earlier life of the process. */
  find(reference: string): Promise<MadeDeal | undefined>
  /** Throws NoSuchDeal. */
  status(dealCid: string): Promise<DealStatus>
  /** Bytes of one file of a deal from its provider, each block verified against its CID before it is given. Throws NotRetrievable. */
  retrieve(dealCid: string, file: PackedFile, signal?: AbortSignal): AsyncIterable<Uint8Array>
  stop(): Promise<void>
}

/**
 * A storage provider, in the terms of the task platform where it has them. Prices are decimals in fil per GiB and
 * epoch.
 */
export interface Provider {
  readonly minerId: string
  readonly location: string
  readonly price: string
  /** '' when it accepts no verified deals. */
  readonly verifiedPrice: string
  /** Bytes. */
  readonly minPieceSize: number
  readonly maxPieceSize: number
  readonly offlineDealAvailable: boolean
  readonly score: number
  readonly status: 'Active' | 'Offline'
  readonly contactInfo: string
}

/** The terms of a deal, in the form of the gateway's REST interface. */
export interface DealTerms {
  readonly minerId: string
  /** Decimal; fil per epoch for the whole piece. */
  readonly price: string
  /** Duration in epochs. */
  readonly duration: number
  readonly verifiedDeal: boolean
  readonly fastRetrieval: boolean
}

export interface DealFile {
  /**
   * Names in the directories of the DAG, outermost first. Each is valid in a directory and unique among its siblings.
   * Empty for a deal of one file, which is the root itself.
   */
  readonly path: readonly string[]
  /** Bytes; longer or shorter content fails the deal. */
  readonly size: number
  content(): AsyncIterable<Uint8Array>
}

export interface PackedFile {
  readonly path: readonly string[]
  readonly size: number
  readonly cid: string
}

export type DealPhase = 'Packing' | 'Committing' | 'Sending' | 'Done'

export interface DealProgress {
  readonly phase: DealPhase
  /** Bytes packed, or, while committing, hashed into the piece CID; `bytesTotal` counts the same. */
  readonly bytesDone: number
  readonly bytesTotal: number
  readonly filesDone: number
}

/** Files to pack into one CAR. */
export interface Packing {
  /** Yields the files of one directory consecutively, which keeps memory flat. Read once. */
  files(): AsyncIterable<DealFile>
  /** Sum of the sizes of all files, for the progress. */
  readonly bytesTotal: number
  /** Called and awaited for each file once its CID is known, before the promise of the call resolves. */
  onFile(file: PackedFile): Promise<void> | void
  onProgress?(progress: DealProgress): void
  readonly signal?: AbortSignal
}

export interface DealRequest extends Packing {
  /**
   * Idempotency key chosen by the caller: a repeated reference returns the deal of the first call and makes no other.
   * At most 128 characters.
   */
  readonly reference: string
  readonly terms: DealTerms
  /** Name of the wallet that signs: canonical id of an account. Absent: the wallet of the gateway's first account. */
  readonly wallet?: string
}

export interface PackRequest extends Packing {
  /** Absolute path of the CAR, in a folder that exists: replaced if it exists, removed when packing fails. */
  readonly target: string
}

/** A CAR on the disk, and the piece that it is in a provider's sector. */
export interface PackedCar {
  /** Absolute path. */
  readonly file: string
  /** Root of the DAG. */
  readonly dataCid: string
  readonly carSize: number
  readonly pieceCid: string
  /** Padded, a power of two, bytes. */
  readonly pieceSize: number
}

/** A deal whose CAR reaches the provider in another way than through the network. */
export interface ProposalRequest extends Pick<DealRequest, 'reference' | 'terms' | 'wallet' | 'signal'> {
  readonly car: Omit<PackedCar, 'file'>
}

/** Deals whose CARs reach their providers in another way. Every method may throw NetworkError. */
export interface OfflineDeals {
  /**
   * Proposes a deal, which then waits for its data: a provider imports them in time for the start epoch, or the deal
   * fails and costs nothing. Durable when the promise resolves. A repeated reference returns the first proposal.
   * Rejects with NetworkError NoSuchProvider, ProviderOffline, or TermsRefused with the reason of the provider.
   */
  propose(request: ProposalRequest): Promise<MadeDeal>
  /** The deals with this provider that wait for this piece: at most 100, the earliest first. */
  waitingFor(minerId: string, pieceCid: string): Promise<readonly MadeDeal[]>
  /** True for a deal with this provider, whatever its state. */
  knows(minerId: string, dealCid: string): Promise<boolean>
  /**
   * Reads a file as a provider does before it imports it. Rejects with NetworkError DataRefused when it is no whole CAR
   * with one root.
   */
  inspect(file: string, signal?: AbortSignal): Promise<PackedCar>
  /**
   * Gives the provider of a waiting deal its CAR, which `inspect` or `pack` has described; the file stays where it is.
   * Durable when the promise resolves; does nothing for a deal that has its data. Rejects with NetworkError NoSuchDeal,
   * ProviderOffline, or DataRefused when the provider does not take it.
   * @returns the epoch from which on the deal is active
   */
  import(dealCid: string, car: PackedCar, signal?: AbortSignal): Promise<number>
}

/** A deal that was made. It is durable, and the provider holds the CAR, unless the deal waits for it. */
export interface MadeDeal {
  readonly reference: string
  readonly terms: DealTerms
  /** Address of the wallet that signed the proposal. */
  readonly walletAddress: string
  readonly dataCid: string
  readonly pieceCid: string
  /** Padded, a power of two, bytes. */
  readonly pieceSize: number
  /** Size of the CAR, bytes. */
  readonly carSize: number
  /** CID of the signed proposal, a DAG-CBOR block. */
  readonly dealCid: string
  readonly startEpoch: number
  readonly endEpoch: number
  /** Microseconds since 1970. */
  readonly timeStamp: number
}

/** State names of go-fil-markets, such as `StorageDealActive`. */
export type DealState =
  | 'StorageDealCheckForAcceptance'
  | 'StorageDealPublish'
  | 'StorageDealSealing'
  | 'StorageDealActive'
  | 'StorageDealExpired'
  | 'StorageDealError'

export interface DealStatus extends MadeDeal {
  readonly state: DealState
  /** Reason for the state, as a sentence; may be ''. */
  readonly message: string
  /**
   * True when the network could not ask whether the provider still holds the content: `state` is then the scheduled
   * one, and `message` says why.
   */
  readonly unconfirmed?: boolean
  readonly epoch: number
}

/** A refusal or failure of the network. `message` is meant for the client. */
export class NetworkError extends Error {
  override readonly name = 'NetworkError'
  /**
   * `NoSuchProvider`, `ProviderOffline`, `TermsRefused`: no deal was made and nothing is owed. `NoSuchDeal`.
   * `NotRetrievable`: this provider cannot deliver these bytes (offline, lost, not yet or no longer held, different
   * from the CID). `DataRefused`: the provider does not import this CAR. `Unavailable`: the network itself cannot be
   * reached; the caller may try again.
   */
  readonly code:
    | 'NoSuchProvider'
    | 'ProviderOffline'
    | 'TermsRefused'
    | 'NoSuchDeal'
    | 'NotRetrievable'
    | 'DataRefused'
    | 'Unavailable'
  constructor(code: NetworkError['code'], message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}

/** All deals of one provider that are verified or not, and that it holds or not. */
export interface DealTotals {
  readonly minerId: string
  readonly verified: boolean
  /** The provider still holds the content. */
  readonly held: boolean
  readonly deals: number
  /** Sum of the padded sizes of the pieces, bytes. */
  readonly pieceBytes: number
  /** Sum of the prices, attofil per epoch. */
  readonly price: bigint
}

/** What the owner of a provider may change of it. An absent member stays as it is. */
export type ProviderChange = Partial<
  Pick<Provider, 'location' | 'offlineDealAvailable' | 'price' | 'verifiedPrice' | 'minPieceSize' | 'maxPieceSize'>
>

/**
 * A decentralized storage network as the gateway uses it: the embedded one, or a Kubo node. Every method may throw
 * NetworkError; those that return a promise, DatabaseUnavailableError as well.
 */
export interface Network {
  readonly kind: 'embedded' | 'kubo'
  /** Address of the wallet of the gateway's first account. */
  readonly wallet: string
  readonly epochSeconds: number
  /** The same, ms. */
  readonly epochMs: number
  epoch(): number
  providers(): Promise<readonly Provider[]>
  /**
   * Changes what is named of a provider; durable when the promise resolves. Absent where providers decide this
   * themselves. Rejects with NetworkError NoSuchProvider.
   */
  changeProvider?(minerId: string, change: ProviderChange): Promise<void>
  /** The deals that were ever made, in sums; without those that wait for their data. */
  dealTotals(): Promise<readonly DealTotals[]>
  /** Packs files into a CAR, which is durable when the promise resolves. Memory is bounded as that of `deal` is. */
  pack(request: PackRequest): Promise<PackedCar>
  /** Absent: providers of this network take no CARs in another way. */
  readonly offline?: OfflineDeals
  /**
   * Packs the files into a CAR, creates and signs the proposal and gives it to the provider. Memory does not grow with
   * the size or number of files beyond a stated bound per file. The deal is durable when the promise resolves. When it
   * rejects, no deal was made and nothing is left on the disk; except with DatabaseUnavailableError, when it is not
   * known: ask `find` later, or repeat the call.
   */
  deal(request: DealRequest): Promise<MadeDeal>
  find(reference: string): Promise<MadeDeal | undefined>
  /** Like `find`; and when there is no such deal, none is made later, though a process may be at work on it. */
  settle(reference: string): Promise<MadeDeal | undefined>
  /** Throws NetworkError NoSuchDeal. */
  status(dealCid: string): Promise<DealStatus>
  /**
   * Yields the bytes of one file of a deal from its provider, after verifying each block against its CID. Throws
   * NetworkError NotRetrievable.
   */
  retrieve(dealCid: string, file: PackedFile, signal?: AbortSignal): AsyncIterable<Uint8Array>
  stop(): Promise<void>
}

export interface Car {
  readonly file: string
  readonly dataCid: string
  readonly size: number
}

export interface PackOptions {
  /** Path of the CAR: replaced if it exists, durable when packing resolves, removed when it rejects. */
  readonly target: string
  onFile(file: PackedFile): Promise<void> | void
  /** Content bytes and files packed so far. */
  onProgress?(bytes: number, files: number): void
  readonly signal?: AbortSignal
}

/**
 * Packs files into a CAR of a UnixFS DAG in the profile `unixfs-v1-2025`. Throws when the content of a file does not
 * have the declared size.
 */
export type Pack = (files: AsyncIterable<DealFile>, options: PackOptions) => Promise<Car>

export interface Piece {
  /** `baga6ea4sea...` */
  readonly pieceCid: string
  /** Padded, a power of two, bytes. */
  readonly pieceSize: number
}

/** Computes the piece of a file in a worker thread. */
export type Commit = (
  file: string,
  options: { onProgress?(bytes: number): void; readonly signal?: AbortSignal },
) => Promise<Piece>

/**
 * Yields the bytes of the file whose DAG has the root `cid` from a CAR. Hashes each block before yielding any of it.
 * Throws NetworkError NotRetrievable when the CAR is missing or truncated, or a block is missing or does not match its
 * CID. Memory does not grow with the file.
 */
export type ReadFromCar = (carFile: string, cid: string, signal?: AbortSignal) => AsyncIterable<Uint8Array>

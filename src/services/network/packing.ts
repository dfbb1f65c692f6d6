import type { DealFile, PackedFile } from './network.js'

/** What a CAR holds and where it lies. */
export interface Car {
  /** Absolute path. */
  readonly file: string
  /** Root of the DAG. */
  readonly dataCid: string
  /** Bytes of the CAR. */
  readonly size: number
}

export interface PackOptions {
  /** The file that the CAR is written to; made anew, durable when packing resolves, removed when it rejects. */
  readonly target: string
  onFile(file: PackedFile): Promise<void> | void
  /** Bytes of content packed so far, and files. */
  onProgress?(bytes: number, files: number): void
  readonly signal?: AbortSignal
}

/** Packs files into a CAR of a UnixFS DAG in the profile `unixfs-v1-2025`. Throws when the content of a file is not as long as it said. */
export type Pack = (files: AsyncIterable<DealFile>, options: PackOptions) => Promise<Car>

/** Commitment to a CAR as a piece of a provider's sector. */
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
 * Bytes of the file whose DAG has the root `cid`, out of a CAR. Each block is hashed before any of it is given; throws NetworkError NotRetrievable when the CAR is
 * gone or cut, or a block is not there or not what its CID says. Memory does not grow with the file.
 */
export type ReadFromCar = (carFile: string, cid: string, signal?: AbortSignal) => AsyncIterable<Uint8Array>

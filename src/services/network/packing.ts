import type { DealFile, PackedFile } from './network.js'

/** A CAR on the disk. */
export interface Car {
  /** Absolute path. */
  readonly file: string
  /** Root of the DAG. */
  readonly dataCid: string
  /** Bytes of the CAR. */
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

/** The commitment to a CAR as a piece in a provider's sector. */
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

import type { ManifestFile } from '../manifest.js'

/** Bytes of content in one leaf of a DAG. */
const LEAF = 1024 * 1024
/** Most bytes that a leaf, a file and a CAR take besides content and names: heads of blocks, links, and directories. */
const PER_LEAF = 160
const PER_FILE = 320
const PER_CAR = 2048

/** Of 128 bytes of a piece, 127 are data. */
export function dataOfPiece(pieceSize: number): number {
  return Math.floor(pieceSize / 128) * 127
}

/** Bytes of the smallest piece that a CAR with so many bytes of content can have. */
export function leastPiece(bytes: number): number {
  let size = 128
  while (dataOfPiece(size) < bytes) size *= 2
  return size
}

/** Divides files into CARs of at most `most` bytes, in their order. A larger file gets a CAR of its own. */
export class Slices {
  readonly #most: number
  #bytes = Number.POSITIVE_INFINITY

  constructor(most: number) {
    this.#most = most
  }

  /** Adds a file. Returns true when it begins another CAR. */
  add(file: Pick<ManifestFile, 'key' | 'size'>): boolean {
    const bytes = bytesInCar(file)
    const begins = this.#bytes + bytes > this.#most
    this.#bytes = (begins ? PER_CAR : this.#bytes) + bytes
    return begins
  }
}

/** Bytes that a file takes in a CAR at most. A name stands in its directory, and may be replaced by a longer one. */
function bytesInCar({ key, size }: Pick<ManifestFile, 'key' | 'size'>): number {
  const directories = key.filter((byte) => byte === 0x2f).length
  return size + Math.ceil(size / LEAF) * PER_LEAF + (directories + 1) * PER_FILE + 2 * key.length
}

import { crc32 } from '@node-rs/crc32'

const KiB = 1024

/** Bytes of a chunk: those of a small body are small, so that a short range costs little more than its own bytes. */
const LEAST = 64 * KiB

/**
 * Chunk of a large body, bytes: a slow reader, which takes 32 KiB at a time, keeps a chunk in memory or has it read
 * again.
 */
const LARGE = 128 * KiB

/** Chunk of a huge body, bytes, whose checksums are in memory while it is written: what a download reads at a time. */
const MOST = 512 * KiB
const HUGE_BYTES = 256 * KiB * KiB * KiB

/** Chunks whose checksums are in one row of the index. */
const CHUNKS_OF_ROW = 1024

/** Bytes of a checksum: CRC-32 (IEEE 802.3), little-endian. Twice as fast as CRC-32C here, and as good. */
const SUM = 4

/** The bytes of each chunk but the last, of a body of this size. Fixed for ever: rows of checksums do not say it. */
export function chunkBytesOf(size: number): number {
  if (size > HUGE_BYTES) return MOST
  return size > LEAST * CHUNKS_OF_ROW ? LARGE : LEAST
}

/** The checksum of the chunk that these bytes are, or go on with. */
export function sumOf(bytes: Uint8Array, before = 0): number {
  return crc32(bytes, before)
}

/** The checksums of the chunks of a body, in rows of `CHUNKS_OF_ROW`. */
export type SumRows = readonly Buffer[]

/** The row of a position, and the place of its checksum in it. */
export function placeOfSum(size: number, position: number): { readonly row: number; readonly at: number } {
  const chunk = Math.floor(position / chunkBytesOf(size))
  return { row: Math.floor(chunk / CHUNKS_OF_ROW), at: (chunk % CHUNKS_OF_ROW) * SUM }
}

/** Bytes of this row of a body of this size. */
export function bytesOfRow(size: number, row: number): number {
  const chunks = Math.ceil(size / chunkBytesOf(size))
  return Math.min(CHUNKS_OF_ROW, chunks - row * CHUNKS_OF_ROW) * SUM
}

export function haveSameSums(one: SumRows, other: SumRows): boolean {
  return one.length === other.length && one.every((row, n) => row.equals(other[n] as Buffer))
}

/** Computes the checksums of a body of a known size, in at most 40 MiB of memory for 5 TiB. */
export class SumWriter {
  readonly #size: number
  readonly #chunkBytes: number
  readonly #rows: Buffer[] = []
  #position = 0
  #sum = 0

  constructor(size: number) {
    this.#size = size
    this.#chunkBytes = chunkBytesOf(size)
  }

  /** Bytes beyond the size are left out: those who write the body refuse them. */
  update(bytes: Uint8Array): void {
    for (let rest = bytes.subarray(0, this.#size - this.#position); rest.length > 0; ) {
      const left = this.#chunkBytes - (this.#position % this.#chunkBytes)
      const piece = rest.length > left ? rest.subarray(0, left) : rest
      this.#sum = crc32(piece, this.#sum)
      this.#position += piece.length
      if (piece.length === left || this.#position === this.#size) this.#keep()
      rest = rest.subarray(piece.length)
    }
  }

  /** Throws Error when bytes are missing. */
  finish(): SumRows {
    if (this.#position !== this.#size) throw new Error('The body is shorter than was said.')
    return this.#rows
  }

  #keep(): void {
    const { row, at } = placeOfSum(this.#size, this.#position - 1)
    this.#rows[row] ??= Buffer.alloc(bytesOfRow(this.#size, row))
    this.#rows[row].writeUInt32LE(this.#sum, at)
    this.#sum = 0
  }
}

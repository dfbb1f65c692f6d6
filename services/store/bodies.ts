import { randomBytes } from 'node:crypto'
import type { BodySink } from '../http/body-sink.js'
import type { SumRows } from './chunk-sums.js'

/**
 * The bytes of an object, as a row of the index names them. They never change: a body that is stored again gets another
 * name, so that a request which arrives late, at a store or at a disk, meets no other body.
 */
export interface StoredBody {
  readonly name: string
  readonly size: number
  /** The ETag that a store has answered, which is a hint, and the CRC-32 of all bytes; null for a file. */
  readonly mark: string | null
  /** Checksums of a new body. The row that names it is committed together with them. */
  readonly sums?: SumRows
  /** When a row must not name it for the first time any more, as a sweep may remove it soon: ms since 1970. */
  readonly until?: number
}

/** Throws BodyError for a new body that waited for its row for so long that another process may have removed it. */
export function mustBeNew(body: Buffer | StoredBody): void {
  if (!Buffer.isBuffer(body) && Date.now() > (body.until ?? Number.POSITIVE_INFINITY))
    throw new BodyError('unavailable', 'The process was stopped for too long.')
}

/** Names of bodies that rows have: of these, those that any row names, and perhaps others. */
export type WithRow = (names: readonly string[]) => Promise<ReadonlySet<string>>

/** Most names to ask for at a time. */
export const MAX_NAMES = 1000

/** True when no row names the body. */
export async function isNameless(withRow: WithRow, name: string): Promise<boolean> {
  return !(await withRow([name])).has(name)
}

/**
 * What a place compares before it gives bytes, besides their number: the mark of the store; the CRC-32 of the whole
 * body, which `mark` includes; or nothing, for a caller who compares each chunk.
 */
export type Compared = 'mark' | 'crc' | 'nothing'

/** Compares chunks of a body with their checksums. */
interface ChunkCheck {
  /** Bytes of each chunk but the last. */
  readonly chunkBytes: number
  /** Throws BodyError unless these are the bytes of one or more whole chunks from this position on. */
  verify(position: number, bytes: Uint8Array): Promise<void>
}

/**
 * Keeps bodies. A body counts once a row of the index names it. One without a row is garbage: it is removed at once, or
 * after a crash by a sweep. Methods throw BodyError.
 */
export interface Bodies {
  /**
   * Begins a body. Call `committed` once its row is committed, `leave` when it may be, or else `discard`.
   * @param name that no body has or had: a generation, or what `nameAgain` makes of it
   * @param size of the whole body
   */
  create(name: string, size: number): Promise<NewBody>
  committed(body: StoredBody): void
  /** Leaves a body of which it is unknown whether a row names it to a sweep that comes when this is known. */
  leave(body: StoredBody): void
  /**
   * Resolves with undefined when there is no such body; a later `stream` may find that, too.
   * @param compared default `mark`
   */
  open(body: StoredBody, compared?: Compared): Promise<OpenBody | undefined>
  /** Removes a body that no row names, in the background. Those that have it open can still read it to the end. */
  discard(body: StoredBody): void
  /**
   * Removes bodies of earlier runs without a row and resolves with their number. Runs safely beside all other
   * operations.
   * @param withRow asked for many, and again for each right before its removal
   */
  sweep(withRow: WithRow): Promise<number>
  /** Resolves when no removal is under way. */
  close(): Promise<void>
}

/** A body that is being written. It takes ownership of the chunks. */
export interface NewBody extends BodySink {
  /** Resolves when the whole body is durable. */
  finish(): Promise<StoredBody>
  /** Ends a body that is not needed, also after `finish` has failed. */
  abandon(): Promise<void>
}

/** Close it after use. */
export interface OpenBody {
  /** Descriptor of the file that has the bytes, if there is one: it is sent faster than a stream. */
  readonly fd?: number
  /** For the bytes of that file; what `stream` gives has been compared. Absent for a body without checksums. */
  readonly check?: ChunkCheck
  /**
   * Reads bytes `first` to `last`; each chunk has its own memory. The promise rejects when there are none; an iteration
   * that ends has given exactly those bytes.
   */
  stream(first: number, last: number): Promise<AsyncIterable<Buffer>>
  close(): Promise<void>
}

export function bodyInMemory(bytes: Buffer): OpenBody {
  return {
    stream: async (first, last) =>
      (async function* () {
        yield bytes.subarray(first, last + 1)
      })(),
    close: async () => {},
  }
}

/** Reads a stream in pieces of chosen lengths. */
export class PieceReader {
  readonly #chunks: AsyncIterator<Buffer>
  #rest: Buffer = Buffer.alloc(0)

  constructor(chunks: AsyncIterable<Buffer>) {
    this.#chunks = chunks[Symbol.asyncIterator]()
  }

  /** The next `length` bytes; fewer only at the end. */
  async next(length: number): Promise<Buffer> {
    const pieces: Buffer[] = []
    let missing = length
    while (missing > 0) {
      if (this.#rest.length === 0) {
        const { done, value } = await this.#chunks.next()
        if (done) break
        this.#rest = value
      }
      const piece = this.#rest.subarray(0, missing)
      this.#rest = this.#rest.subarray(piece.length)
      missing -= piece.length
      pieces.push(piece)
    }
    return pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces)
  }

  /** Ends the stream. */
  async close(): Promise<void> {
    await this.#chunks.return?.()
  }
}

/** Digits of a generation. */
const GENERATION = 32

/** A name for a body that is stored once more: that of its generation, and random digits. */
export function nameAgain(name: string): string {
  return `${generationOf(name)}.${randomBytes(8).toString('hex')}`
}

/** The generation whose bytes the body has. */
export function generationOf(name: string): string {
  return name.slice(0, GENERATION)
}

/**
 * A body cannot be read or written. Thrown in place of bytes that are not those that were stored. `unavailable`: it may
 * be possible later. `refused`: not before the operator does something.
 */
export class BodyError extends Error {
  override readonly name = 'BodyError'
  readonly kind: 'lost' | 'changed' | 'unavailable' | 'refused'

  constructor(kind: BodyError['kind'], message: string, options?: ErrorOptions) {
    super(message, options)
    this.kind = kind
  }
}

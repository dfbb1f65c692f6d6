import { read } from 'node:fs'
import { freeBuffer } from '../../common/free-buffer.js'
import type { ServiceResponse } from './body.js'
import type { Span } from './range.js'

/** An open file whose bytes are to be sent. */
export interface FileContent {
  readonly fd: number
  /** Compares whole chunks with what was stored; default: nothing is compared. */
  readonly check?: {
    /** A divisor of `CHUNK`. */
    readonly chunkBytes: number
    /** Throws for other bytes. */
    verify(position: number, bytes: Uint8Array): Promise<void>
  }
}

/** A response to a client in this process, which takes the memory of what is sent. */
export type Giving = ServiceResponse & Required<Pick<ServiceResponse, 'room' | 'give' | 'spare'>>

/** Bytes read per call, for a socket. */
export const CHUNK = 512 * 1024

/** Bytes read per call for a client in this process: each chunk wakes four threads. */
const GIVEN_CHUNK = 2 * CHUNK

/**
 * Reads a span of an open file. For a socket it uses two buffers: one is filled while the other is being sent, and
 * neither is filled again before the socket has taken it. With a check, whole chunks are read and compared.
 */
export class FileReader {
  readonly #content: FileContent
  readonly #client: Pick<Giving, 'spare'> | undefined
  readonly #chunkBytes: number
  readonly #last: number
  /** Position behind the last byte to read. */
  readonly #end: number
  /** Buffers for a connection; undefined for a client in this process, which gets the memory itself. */
  readonly #buffers: readonly [Buffer, Buffer] | undefined
  #turn: 0 | 1 = 0
  /** The memory of the bytes that a client in this process gets next. */
  #read: Buffer | undefined
  #first: number
  #position: number

  /**
   * @param size of the content, bytes
   * @param client in this process, to whom each buffer moves
   */
  constructor(content: FileContent, size: number, { first, last }: Span, client?: Pick<Giving, 'spare'>) {
    this.#chunkBytes = content.check?.chunkBytes ?? 1
    this.#content = content
    this.#client = client
    this.#last = last
    this.#end = last < first ? first : Math.min(size, last - (last % this.#chunkBytes) + this.#chunkBytes)
    this.#first = first
    this.#position = first - (first % this.#chunkBytes)
    const all = Math.max(0, this.#end - this.#position)
    const bytes = Math.min(CHUNK, all)
    this.#buffers = client ? undefined : [Buffer.allocUnsafe(bytes), Buffer.allocUnsafe(all > bytes ? bytes : 0)]
  }

  /**
   * The next bytes; undefined behind the last. Those that were returned before the last call may be overwritten.
   * @param most bytes that are wanted; more come where a chunk is longer
   */
  async next(most = this.#most): Promise<Buffer | undefined> {
    const position = this.#position
    if (position >= this.#end) return undefined
    const { fd, check } = this.#content
    const whole = Math.max(this.#chunkBytes, most - (most % this.#chunkBytes))
    const buffer = this.#buffer(Math.min(whole, this.#most, this.#end - position))
    let bytes = await readAt(fd, buffer, 0, position)
    while (check !== undefined && bytes < buffer.length) {
      const more = await readAt(fd, buffer, bytes, position + bytes)
      if (more === 0) break
      bytes += more
    }
    const found = buffer.subarray(0, bytes)
    await check?.verify(position, found)
    if (bytes === 0) throw new Error('The file is shorter than the index says.')
    this.#position += bytes
    return found.subarray(Math.max(0, this.#first - position), this.#last + 1 - position)
  }

  /** Gives all that is left of what `next` returned last. */
  give(bytes: Buffer, client: Giving): void {
    const { buffer, byteOffset, length } = bytes
    // All of the memory moves to the client, which keeps it as long as these bytes.
    if (buffer.byteLength < 2 * length) {
      client.give(new Uint8Array(buffer as ArrayBuffer, byteOffset, length))
    } else {
      client.give(new Uint8Array(bytes))
      this.#free()
    }
    this.#read = undefined
  }

  /** The rest of what `next` returned last. A view of a part would keep the memory of the whole chunk. */
  keep(rest: Buffer): Buffer {
    if (2 * rest.length > rest.buffer.byteLength) return rest
    const copy = Buffer.from(new Uint8Array(rest).buffer)
    this.#free()
    return copy
  }

  get #most(): number {
    return this.#client ? GIVEN_CHUNK : CHUNK
  }

  get isAtEnd(): boolean {
    return this.#position >= this.#end
  }

  /** Reads the last bytes once more, so many of those that `next` returned last, whose memory is free then. */
  back(bytes: number): void {
    this.#free()
    this.#first = Math.min(this.#position, this.#last + 1) - bytes
    this.#position = this.#first - (this.#first % this.#chunkBytes)
  }

  /** The garbage collector would free it late. */
  #free(): void {
    if (this.#read) freeBuffer(this.#read)
    this.#read = undefined
  }

  #buffer(bytes: number): Buffer {
    if (this.#buffers === undefined) {
      this.#read = this.#client?.spare(bytes) ?? Buffer.allocUnsafeSlow(bytes)
      return this.#read
    }
    const buffer = this.#buffers[this.#turn].subarray(0, bytes)
    this.#turn = this.#turn === 0 ? 1 : 0
    return buffer
  }
}

function readAt(fd: number, buffer: Buffer, offset: number, position: number): Promise<number> {
  return new Promise((resolve, reject) => {
    read(fd, buffer, offset, buffer.length - offset, position, (error, bytes) =>
      error === null ? resolve(bytes) : reject(error),
    )
  })
}

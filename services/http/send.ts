import { read } from 'node:fs'
import { setImmediate } from 'node:timers/promises'
import { freeBuffer } from '../../common/free-buffer.js'
import { FIRST_WINDOW_BYTES } from '../../common/port-messages.js'
import type { HttpExchange, ServiceResponse } from './body.js'
import type { HeaderList } from './errors.js'

/** First and last byte position. */
export interface Span {
  readonly first: number
  readonly last: number
}

const SINGLE = /^bytes=(\d*)-(\d*)$/i

/**
 * Parses a Range header (RFC 9110, 14.2) for a body of `size` bytes. Returns undefined when the whole body is to be
 * sent: without a range, with several ranges, or when the header is not understood. 'unsatisfiable' stands for 416.
 */
export function parseRange(header: string | undefined, size: number): Span | 'unsatisfiable' | undefined {
  const found = header === undefined ? null : SINGLE.exec(header.trim())
  if (found === null) return undefined
  const [, from = '', to = ''] = found
  if (from === '') {
    if (to === '') return undefined
    const suffix = Math.min(Number(to), size)
    return suffix === 0 ? 'unsatisfiable' : { first: size - suffix, last: size - 1 }
  }
  const first = Number(from)
  const last = to === '' ? size - 1 : Math.min(Number(to), size - 1)
  if (to !== '' && Number(to) < first) return undefined
  return first >= size ? 'unsatisfiable' : { first, last }
}

/** Bytes to be sent: an open file, or what a stream gives of it. */
type Content =
  | FileContent
  | { readonly fd?: undefined; stream(first: number, last: number): Promise<AsyncIterable<Uint8Array>> }

interface FileContent {
  readonly fd: number
  /** Compares whole chunks with what was stored; default: nothing is compared. */
  readonly check?: {
    /** A divisor of `CHUNK`. */
    readonly chunkBytes: number
    /** Throws for other bytes. */
    verify(position: number, bytes: Uint8Array): Promise<void>
  }
}

/**
 * Answers with the content or a range of it; a HEAD, and content that is undefined, with the head alone. Throws before
 * the head when the first bytes cannot be read, or are not those that were stored.
 * @param size of the content, bytes
 * @param idleMs the response is destroyed when the client reads nothing for so long
 * @param failed gets the error of the content behind the head
 */
export async function replyContent(
  { request, response }: Pick<HttpExchange, 'request' | 'response'>,
  content: Content | undefined,
  size: number,
  span: Span | undefined,
  headers: HeaderList,
  idleMs: number,
  failed?: (error: unknown) => void,
): Promise<void> {
  const { first, last } = span ?? { first: 0, last: size - 1 }
  const sent = request.method === 'HEAD' ? undefined : content
  const chunks = sent?.fd === undefined ? await sent?.stream(first, last) : undefined
  const file =
    sent?.fd === undefined ? undefined : new FileReader(sent, size, { first, last }, response.give !== undefined)
  const begun = await file?.next(response.give ? FIRST_WINDOW_BYTES : CHUNK)
  const range = span === undefined ? [] : ['Content-Range', `bytes ${first}-${last}/${size}`]
  // Content-Length must follow Content-Disposition: Node decodes the latter as UTF-8 once it knows the former.
  response.writeHead(span === undefined ? 200 : 206, [...headers, ...range, 'Content-Length', last - first + 1])
  if (chunks !== undefined) await stream(chunks, response, idleMs, failed)
  else if (file === undefined || begun === undefined) response.end()
  else if (response.give) await giveFile(file, begun, response as Giving, idleMs, failed)
  else await sendFile(file, begun, response, idleMs, failed)
}

/** Bytes that may wait for the socket. */
const QUEUE = 512 * 1024

/**
 * Sends the chunks and ends the response. Destroys it when a chunk fails, so that a part does not look complete, or
 * when the client takes nothing for `idleMs`. Resolves when the chunks are no longer needed.
 * @param failed gets the error of a chunk
 */
export async function stream(
  chunks: AsyncIterable<Uint8Array | string>,
  response: ServiceResponse,
  idleMs: number,
  failed: (error: unknown) => void = () => {},
): Promise<void> {
  const idle = setTimeout(() => response.destroy(), idleMs)
  try {
    // A client in this process says itself how much may be under way.
    const queue = response.give ? 0 : QUEUE
    for await (const chunk of chunks) {
      if (response.destroyed) return
      idle.refresh()
      // The socket takes what waits for it in one call, which costs less than one for each chunk.
      if (response.write(chunk) || response.writableLength < queue) await setImmediate()
      else await drained(response)
    }
    response.end()
  } catch (error) {
    failed(error)
    response.destroy()
  } finally {
    clearTimeout(idle)
  }
}

/** Also resolves when the client has disconnected. */
function drained(response: ServiceResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      response.off('drain', done).off('close', done)
      resolve()
    }
    if (response.destroyed) resolve()
    else response.on('drain', done).on('close', done)
  })
}

/** Bytes read per call. */
const CHUNK = 512 * 1024

/**
 * Reads a span of an open file. For a socket it uses two buffers: one is filled while the other is being sent, and
 * neither is filled again before the socket has taken it. With a check, whole chunks are read and compared.
 */
class FileReader {
  readonly #content: FileContent
  readonly #chunkBytes: number
  readonly #last: number
  /** Position behind the last byte to read. */
  readonly #end: number
  /** None for a client in this process, which gets the memory itself. */
  readonly #buffers: readonly [Buffer, Buffer] | undefined
  #turn: 0 | 1 = 0
  /** The memory of the bytes that a client in this process gets next. */
  #read: Buffer | undefined
  #first: number
  #position: number

  /**
   * @param size of the content, bytes
   * @param gives whether each buffer moves to the client
   */
  constructor(content: FileContent, size: number, { first, last }: Span, gives: boolean) {
    this.#chunkBytes = content.check?.chunkBytes ?? 1
    this.#content = content
    this.#last = last
    this.#end = last < first ? first : Math.min(size, last - (last % this.#chunkBytes) + this.#chunkBytes)
    this.#first = first
    this.#position = first - (first % this.#chunkBytes)
    const all = Math.max(0, this.#end - this.#position)
    const bytes = Math.min(CHUNK, all)
    this.#buffers = gives ? undefined : [Buffer.allocUnsafe(bytes), Buffer.allocUnsafe(all > bytes ? bytes : 0)]
  }

  /**
   * The next bytes; undefined behind the last. Those that were returned before the last call may be overwritten.
   * @param most bytes that are wanted; more come where a chunk is longer
   */
  async next(most = CHUNK): Promise<Buffer | undefined> {
    const position = this.#position
    if (position >= this.#end) return undefined
    const { fd, check } = this.#content
    const whole = Math.max(this.#chunkBytes, most - (most % this.#chunkBytes))
    const buffer = this.#buffer(Math.min(whole, CHUNK, this.#end - position))
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
      this.#read = Buffer.allocUnsafeSlow(bytes)
      return this.#read
    }
    const buffer = this.#buffers[this.#turn].subarray(0, bytes)
    this.#turn = this.#turn === 0 ? 1 : 0
    return buffer
  }
}

type Giving = ServiceResponse & Required<Pick<ServiceResponse, 'room' | 'give'>>

/** Verified bytes that wait in memory until the client wants them; more are read once more. A chunk of most bodies. */
const MOST_HELD = 128 * 1024

/** As `sendFile`, to a client in this process: little is read before the client wants it, and few bytes are copied. */
async function giveFile(
  file: FileReader,
  begun: Buffer,
  response: Giving,
  idleMs: number,
  failed: (error: unknown) => void = () => {},
): Promise<void> {
  const idle = setTimeout(() => response.destroy(), idleMs)
  try {
    for (let bytes: Buffer | undefined = begun; bytes !== undefined; ) {
      const room = await response.room()
      idle.refresh()
      if (bytes.length <= room) {
        file.give(bytes, response)
        // A client that has everything grants no more.
        bytes = file.isAtEnd ? undefined : await file.next(await response.room())
        continue
      }
      response.give(new Uint8Array(bytes.subarray(0, room)))
      const rest = bytes.subarray(room)
      if (rest.length <= MOST_HELD) {
        bytes = file.keep(rest)
        continue
      }
      file.back(rest.length)
      bytes = await file.next(await response.room())
    }
    response.end()
  } catch (error) {
    if (!response.destroyed) failed(error)
    response.destroy()
  } finally {
    clearTimeout(idle)
  }
}

/**
 * Sends what a file has and ends the response. Destroys the response, so that a partial body does not look complete,
 * when the file cannot be read or the client reads nothing for `idleMs`. Resolves when the file is no longer needed.
 * @param begun the first bytes
 * @param failed gets the error of the file
 */
async function sendFile(
  file: FileReader,
  begun: Buffer,
  response: ServiceResponse,
  idleMs: number,
  failed: (error: unknown) => void = () => {},
): Promise<void> {
  const idle = setTimeout(() => response.destroy(), idleMs)
  let sent: Promise<void> = Promise.resolve()
  try {
    for (let bytes: Buffer | undefined = begun; bytes !== undefined; bytes = await file.next()) {
      // The other buffer must be sent before it is filled again. This also bounds the socket's queue to one write.
      await sent
      idle.refresh()
      sent = write(response, bytes)
      // The next iteration awaits it; a rejection in between must not be unhandled.
      sent.catch(() => {})
    }
    await sent
    response.end()
  } catch (error) {
    if (!response.destroyed) failed(error)
    response.destroy()
  } finally {
    clearTimeout(idle)
  }
}

function readAt(fd: number, buffer: Buffer, offset: number, position: number): Promise<number> {
  return new Promise((resolve, reject) => {
    read(fd, buffer, offset, buffer.length - offset, position, (error, bytes) =>
      error === null ? resolve(bytes) : reject(error),
    )
  })
}

/** Resolves when the socket has taken the whole chunk; rejects when the client has disconnected. */
function write(response: ServiceResponse, chunk: Buffer): Promise<void> {
  return new Promise((resolve, reject) => {
    if (response.destroyed) return reject(new Error('The client has disconnected.'))
    const gone = (): void => reject(new Error('The client has disconnected.'))
    response.once('close', gone)
    response.write(chunk, (error) => {
      response.off('close', gone)
      if (error) reject(error)
      else resolve()
    })
  })
}

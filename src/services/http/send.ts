import { read } from 'node:fs'
import { setImmediate } from 'node:timers/promises'
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
  | { readonly fd: number }
  | { readonly fd?: undefined; stream(first: number, last: number): Promise<AsyncIterable<Uint8Array>> }

/**
 * Answers with the content or a range of it; a HEAD, and content that is undefined, with the head alone. Throws before
 * the head when a stream does not begin.
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
  const range = span === undefined ? [] : ['Content-Range', `bytes ${first}-${last}/${size}`]
  // Content-Length must follow Content-Disposition: Node decodes the latter as UTF-8 once it knows the former.
  response.writeHead(span === undefined ? 200 : 206, [...headers, ...range, 'Content-Length', last - first + 1])
  if (chunks !== undefined) await stream(chunks, response, idleMs, failed)
  else if (sent?.fd === undefined) response.end()
  else await sendFile(sent.fd, first, last, response, idleMs, failed)
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
    for await (const chunk of chunks) {
      if (response.destroyed) return
      idle.refresh()
      // The socket takes what waits for it in one call, which costs less than one for each chunk.
      if (response.write(chunk) || response.writableLength < QUEUE) await setImmediate()
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
 * Sends bytes `first` to `last` of an open file and ends the response. Uses two buffers: one is filled while the other
 * is being sent, and neither is reused before the socket has taken it. Destroys the response, so that a partial body
 * does not look complete, when the file cannot be read or the client reads nothing for `idleMs`. Resolves when the file
 * is no longer needed.
 * @param failed gets the error of the file
 */
async function sendFile(
  fd: number,
  first: number,
  last: number,
  response: ServiceResponse,
  idleMs: number,
  failed: (error: unknown) => void = () => {},
): Promise<void> {
  const size = Math.min(CHUNK, last - first + 1)
  const buffers = [Buffer.allocUnsafe(size), Buffer.allocUnsafe(size)] as const
  const idle = setTimeout(() => response.destroy(), idleMs)
  let sent: Promise<void> = Promise.resolve()
  try {
    for (let position = first, turn: 0 | 1 = 0; position <= last; turn = turn === 0 ? 1 : 0) {
      const buffer = buffers[turn]
      const bytes = await readAt(fd, buffer, Math.min(buffer.length, last + 1 - position), position)
      position += bytes
      // The other buffer must be sent before it is filled again. This also bounds the socket's queue to one write.
      await sent
      idle.refresh()
      sent = write(response, buffer.subarray(0, bytes))
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

function readAt(fd: number, buffer: Buffer, length: number, position: number): Promise<number> {
  return new Promise((resolve, reject) => {
    read(fd, buffer, 0, length, position, (error, bytes) => {
      if (error !== null) reject(error)
      else if (bytes === 0) reject(new Error('The file is shorter than the index says.'))
      else resolve(bytes)
    })
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

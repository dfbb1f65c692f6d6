import { setImmediate } from 'node:timers/promises'
import { FIRST_WINDOW_BYTES } from '../../common/port-messages.js'
import type { HttpExchange, ServiceResponse } from './body.js'
import type { HeaderList } from './errors.js'
import { CHUNK, type FileContent, FileReader, type Giving } from './file-reader.js'
import type { Span } from './range.js'

/** Bytes to be sent: an open file, or what a stream gives of it. */
type Content =
  | FileContent
  | { readonly fd?: undefined; stream(first: number, last: number): Promise<AsyncIterable<Uint8Array>> }

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
    sent?.fd === undefined
      ? undefined
      : new FileReader(sent, size, { first, last }, response.give && (response as Giving))
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

/** Resolves when the answer takes bytes again, or the client has disconnected. */
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

/** Verified bytes that wait in memory until the client wants them; more are read once more. A chunk of most bodies. */
const MOST_HELD = 128 * 1024

/**
 * Does what `sendFile` does, to a client in this process: little is read before the client wants it, and few bytes are
 * copied.
 */
async function giveFile(
  file: FileReader,
  begun: Buffer,
  response: Giving,
  idleMs: number,
  failed?: (error: unknown) => void,
): Promise<void> {
  await sending(response, idleMs, failed, async (idle) => {
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
  })
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
  failed?: (error: unknown) => void,
): Promise<void> {
  await sending(response, idleMs, failed, async (idle) => {
    let sent: Promise<void> = Promise.resolve()
    for (let bytes: Buffer | undefined = begun; bytes !== undefined; bytes = await file.next()) {
      // The other buffer must be sent before it is filled again. This also bounds the socket's queue to one write.
      await sent
      idle.refresh()
      sent = write(response, bytes)
      // The next iteration awaits it; a rejection in between must not be unhandled.
      sent.catch(() => {})
    }
    await sent
  })
}

/**
 * Sends a file by `send`, which refreshes the timer as bytes are taken, and ends the response. Destroys it when the
 * file fails.
 */
async function sending(
  response: ServiceResponse,
  idleMs: number,
  failed: (error: unknown) => void = () => {},
  send: (idle: NodeJS.Timeout) => Promise<void>,
): Promise<void> {
  const idle = setTimeout(() => response.destroy(), idleMs)
  try {
    await send(idle)
    response.end()
  } catch (error) {
    if (!response.destroyed) failed(error)
    response.destroy()
  } finally {
    clearTimeout(idle)
  }
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

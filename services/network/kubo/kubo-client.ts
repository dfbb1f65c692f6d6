import { randomUUID } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { Readable } from 'node:stream'
import { type Dispatcher, Pool } from 'undici'
import { readAtMost, readBeginning } from '../../../common/bounded-text.js'
import { NetworkError } from '../network.js'
import { IdleTimeoutError, KuboError, nodeError, unreachable } from './kubo-errors.js'

const CONNECTIONS = 16

const CONNECT_MS = 10_000

/** Largest short answer, bytes: a few lines of JSON. */
const MAX_ANSWER_BYTES = 64 * 1024

interface KuboClientOptions {
  /** URL of the node's RPC: http or https, with name and password if the node requires them. */
  readonly url: string
  /** Idle timeout: a call fails when the node neither accepts nor sends a byte for this long, ms. */
  readonly timeoutMs: number
}

type Query = Readonly<Record<string, string | number | boolean>>

interface KuboUpload {
  readonly headers: Readonly<Record<string, string>>
  readonly body: AsyncIterable<Uint8Array>
  /** Time that the node may take to answer once it has received the upload, ms. */
  readonly answerMs: number
}

/**
 * Client of the RPC of a Kubo node (https://docs.ipfs.tech/reference/kubo/rpc/). Methods throw NetworkError Unavailable
 * when the node cannot be reached, is too slow or is not a Kubo node, KuboError when the node reports a failure, and
 * the reason of the signal when it aborts.
 */
export class KuboClient {
  readonly #pool: Pool
  readonly #path: string
  readonly #headers: Readonly<Record<string, string>>
  readonly #timeoutMs: number

  /** Throws RangeError unless the URL is http or https. */
  constructor({ url, timeoutMs }: KuboClientOptions) {
    const { origin, path, headers } = addressOf(url)
    this.#path = path
    this.#headers = headers
    this.#timeoutMs = timeoutMs
    // `IdleTimeout` keeps the timeouts, because it also covers sending.
    this.#pool = new Pool(origin, {
      connections: CONNECTIONS,
      connect: { timeout: Math.min(CONNECT_MS, timeoutMs) },
      headersTimeout: 0,
      bodyTimeout: 0,
    })
  }

  async call(command: string, query: Query, signal?: AbortSignal, upload?: KuboUpload): Promise<string> {
    const bytes = await this.#answer(command, query, MAX_ANSWER_BYTES, signal, upload)
    return bytes.toString('utf8')
  }

  /** Returns an answer of bytes. Throws KuboError when it has more than `maxBytes`. */
  bytes(command: string, query: Query, maxBytes: number, signal?: AbortSignal): Promise<Buffer> {
    return this.#answer(command, query, maxBytes, signal)
  }

  async #answer(
    command: string,
    query: Query,
    maxBytes: number,
    signal: AbortSignal | undefined,
    upload?: KuboUpload,
  ): Promise<Buffer> {
    const bytes = await readAtMost(this.stream(command, query, signal, upload), maxBytes)
    if (bytes) return bytes
    throw new KuboError(`The node answered "${command}" with more than ${maxBytes} bytes.`)
  }

  /** Streams an answer. The timeout runs only while the node is waited for, not while the reader processes a chunk. */
  async *stream(command: string, query: Query, signal?: AbortSignal, upload?: KuboUpload): AsyncIterable<Uint8Array> {
    const timeout = new IdleTimeout(this.#timeoutMs, signal)
    try {
      const { body, trailers } = await this.#request(command, query, timeout, upload)
      for await (const chunk of body) {
        timeout.pause()
        yield chunk
        timeout.renew()
      }
      const failure = trailers['x-stream-error']
      if (failure !== undefined) throw new KuboError(failure)
    } catch (error) {
      signal?.throwIfAborted()
      if (error instanceof KuboError || error instanceof NetworkError) throw error
      throw unreachable(timeout.signal.aborted ? timeout.signal.reason : error)
    } finally {
      timeout.end()
    }
  }

  close(): Promise<void> {
    return this.#pool.destroy()
  }

  async #request(
    command: string,
    query: Query,
    timeout: IdleTimeout,
    upload: KuboUpload | undefined,
  ): Promise<Dispatcher.ResponseData> {
    const answer = await this.#pool.request({
      method: 'POST',
      path: `${this.#path}/api/v0/${command}`,
      query,
      headers: { ...this.#headers, ...upload?.headers },
      body: upload === undefined ? null : Readable.from(watched(upload, timeout), { objectMode: false }),
      signal: timeout.signal,
    })
    timeout.renew()
    if (answer.statusCode === 200) return answer
    throw nodeError(answer.statusCode, (await readBeginning(answer.body, MAX_ANSWER_BYTES)).toString('utf8'))
  }
}

/** The body; each chunk that the node accepts restarts the timeout. */
async function* watched({ body, answerMs }: KuboUpload, timeout: IdleTimeout): AsyncIterable<Uint8Array> {
  for await (const chunk of body) {
    timeout.renew()
    yield chunk
  }
  timeout.renew(answerMs)
}

interface Address {
  readonly origin: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
}

function addressOf(text: string): Address {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw new RangeError('The RPC of a Kubo node has a URL of http or https, such as http://127.0.0.1:5001.')
  }
  const { origin, pathname, username, password } = url
  const login = Buffer.from(`${unescaped(username)}:${unescaped(password)}`).toString('base64')
  return {
    origin,
    path: pathname.replace(/\/+$/, '').replace(/\/api\/v0$/, ''),
    // Kubo refuses requests that look like those of a browser.
    headers: { 'user-agent': 'dealgate', ...((username || password) && { authorization: `Basic ${login}` }) },
  }
}

function unescaped(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw new RangeError('Name and password in the URL of a Kubo node must be percent-encoded.')
  }
}

/** An idle timeout. Call `end` when the operation is over. */
class IdleTimeout {
  /** Aborts on timeout, or with the caller's signal. */
  readonly signal: AbortSignal
  readonly #controller = new AbortController()
  readonly #ms: number
  readonly #outer: AbortSignal | undefined
  readonly #abort = (): void => this.#controller.abort(this.#outer?.reason)
  #timer: NodeJS.Timeout | undefined
  #ended = false

  /** @param ms time without activity after which the signal aborts */
  constructor(ms: number, outer: AbortSignal | undefined) {
    this.signal = this.#controller.signal
    this.#ms = ms
    this.#outer = outer
    if (outer?.aborted) this.#abort()
    else outer?.addEventListener('abort', this.#abort, { once: true })
    this.renew()
  }

  /** Restarts the timeout after activity, optionally with another length. */
  renew(ms = this.#ms): void {
    clearTimeout(this.#timer)
    if (this.#ended) return
    this.#timer = setTimeout(() => this.#controller.abort(new IdleTimeoutError(ms)), ms)
  }

  /** Stops the timeout until `renew` is called. */
  pause(): void {
    clearTimeout(this.#timer)
  }

  end(): void {
    this.#ended = true
    clearTimeout(this.#timer)
    this.#outer?.removeEventListener('abort', this.#abort)
  }
}

const READ_BYTES = 256 * 1024

interface FileForm {
  readonly headers: Readonly<Record<string, string>>
  readonly body: AsyncIterable<Uint8Array>
}

/**
 * A multipart form of one file, as the file commands of Kubo expect it, streamed from the disk.
 * @param size bytes of the file; sending fails when the size differs
 * @param onSent called with the number of bytes of the file sent so far
 */
export function fileForm(file: string, size: number, onSent: (bytes: number) => void): FileForm {
  const boundary = `dealgate-${randomUUID()}`
  const head = Buffer.from(
    `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="deal.car"\r\nContent-Type: application/octet-stream\r\n\r\n`,
  )
  const tail = Buffer.from(`\r\n--${boundary}--\r\n`)
  return {
    headers: {
      'content-type': `multipart/form-data; boundary=${boundary}`,
      'content-length': String(head.length + size + tail.length),
    },
    body: (async function* () {
      yield head
      let sent = 0
      for await (const chunk of createReadStream(file, { highWaterMark: READ_BYTES })) {
        yield chunk as Uint8Array
        sent += (chunk as Uint8Array).length
        onSent(sent)
      }
      yield tail
    })(),
  }
}

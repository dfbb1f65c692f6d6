import { Readable } from 'node:stream'
import { type Dispatcher, Pool } from 'undici'
import { NetworkError } from '../network.js'
import { KuboError, nodeError, unreachable } from './kubo-errors.js'
import { Patience } from './patience.js'

/** Connections to the node at most. */
const CONNECTIONS = 16
/** Until a connection is there, ms. */
const CONNECT_MS = 10_000
/** Of an answer that is no content, bytes: some lines of JSON. */
const MAX_ANSWER_BYTES = 64 * 1024

export interface KuboClientOptions {
  /** Of the node's RPC: http or https, with name and password when it asks for them. */
  readonly url: string
  /** A node that neither takes nor sends a byte for this long is given up, ms. */
  readonly timeoutMs: number
}

/** Arguments of a command. */
export type Query = Readonly<Record<string, string | number | boolean>>

export interface Upload {
  readonly headers: Readonly<Record<string, string>>
  readonly body: AsyncIterable<Uint8Array>
  /** How long the node may take for the answer once it has everything, ms. */
  readonly answerMs: number
}

/**
 * Speaks to the RPC of a Kubo node (https://docs.ipfs.tech/reference/kubo/rpc/). Methods throw NetworkError Unavailable when the node cannot be reached, is too slow
 * or is none, KuboError when it says that it cannot do what was asked, and the reason of the signal when that is aborted.
 */
export class KuboClient {
  readonly #pool: Pool
  readonly #path: string
  readonly #headers: Readonly<Record<string, string>>
  readonly #timeoutMs: number

  /** Throws RangeError when the URL is none of http or https. */
  constructor({ url, timeoutMs }: KuboClientOptions) {
    const { origin, path, headers } = addressOf(url)
    this.#path = path
    this.#headers = headers
    this.#timeoutMs = timeoutMs
    // The times are kept by `Patience`, which also knows of what is sent.
    this.#pool = new Pool(origin, {
      connections: CONNECTIONS,
      connect: { timeout: Math.min(CONNECT_MS, timeoutMs) },
      headersTimeout: 0,
      bodyTimeout: 0,
    })
  }

  /** The whole of a short answer. */
  async call(command: string, query: Query, signal?: AbortSignal, upload?: Upload): Promise<string> {
    const bytes = await this.#answer(command, query, MAX_ANSWER_BYTES, signal, upload)
    return bytes.toString('utf8')
  }

  /** The whole of an answer of bytes. Throws KuboError when it has more than `maxBytes`. */
  bytes(command: string, query: Query, maxBytes: number, signal?: AbortSignal): Promise<Buffer> {
    return this.#answer(command, query, maxBytes, signal)
  }

  async #answer(
    command: string,
    query: Query,
    maxBytes: number,
    signal: AbortSignal | undefined,
    upload?: Upload,
  ): Promise<Buffer> {
    const chunks: Uint8Array[] = []
    let length = 0
    for await (const chunk of this.stream(command, query, signal, upload)) {
      length += chunk.length
      if (length > maxBytes) throw new KuboError(`The node answers "${command}" with more than ${maxBytes} bytes.`)
      chunks.push(chunk)
    }
    return Buffer.concat(chunks)
  }

  /** An answer as it comes. Time passes only while the node is waited for, not while the reader takes its own. */
  async *stream(command: string, query: Query, signal?: AbortSignal, upload?: Upload): AsyncIterable<Uint8Array> {
    const patience = new Patience(this.#timeoutMs, signal)
    try {
      const { body, trailers } = await this.#request(command, query, patience, upload)
      for await (const chunk of body) {
        patience.pause()
        yield chunk
        patience.renew()
      }
      const failure = trailers['x-stream-error']
      if (failure !== undefined) throw new KuboError(failure)
    } catch (error) {
      signal?.throwIfAborted()
      if (error instanceof KuboError || error instanceof NetworkError) throw error
      throw unreachable(patience.signal.aborted ? patience.signal.reason : error)
    } finally {
      patience.end()
    }
  }

  close(): Promise<void> {
    return this.#pool.destroy()
  }

  async #request(
    command: string,
    query: Query,
    patience: Patience,
    upload: Upload | undefined,
  ): Promise<Dispatcher.ResponseData> {
    const answer = await this.#pool.request({
      method: 'POST',
      path: `${this.#path}/api/v0/${command}`,
      query,
      headers: { ...this.#headers, ...upload?.headers },
      body: upload === undefined ? null : Readable.from(watched(upload, patience), { objectMode: false }),
      signal: patience.signal,
    })
    patience.renew()
    if (answer.statusCode === 200) return answer
    throw nodeError(answer.statusCode, await beginning(answer.body))
  }
}

/** The body, with the patience renewed as the node takes it. */
async function* watched({ body, answerMs }: Upload, patience: Patience): AsyncIterable<Uint8Array> {
  for await (const chunk of body) {
    patience.renew()
    yield chunk
  }
  patience.renew(answerMs)
}

/** What an error needs of an answer; the rest is not read. */
async function beginning(body: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of body) {
    chunks.push(chunk)
    length += chunk.length
    if (length >= MAX_ANSWER_BYTES) break
  }
  return Buffer.concat(chunks).toString('utf8', 0, MAX_ANSWER_BYTES)
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
    // Kubo refuses what looks like a browser.
    headers: { 'user-agent': 'dealgate', ...((username || password) && { authorization: `Basic ${login}` }) },
  }
}

function unescaped(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw new RangeError('Name and password in the URL of a Kubo node are to be percent-encoded.')
  }
}

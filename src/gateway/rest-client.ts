import http, { type ClientRequest, type IncomingMessage } from 'node:http'
import https from 'node:https'
import type { BrandNames } from './brand.js'
import { isLostConnection, timedOut, type UpstreamFailure, unavailable } from './errors.js'
import { single } from './object-facts.js'
import { USER_AGENT } from './rpc.js'

/** Bytes a socket reads ahead while the client is slower than the gateway. */
const READ_AHEAD_BYTES = 1024 * 1024
const MAX_FREE_SOCKETS = 64
/** Most of an error body that is looked at, bytes. */
const MAX_TEXT_BYTES = 16 * 1024

export interface RestOptions {
  readonly url: URL
  /** Until the head of an answer is there, ms. */
  readonly timeoutMs: number
  /** Without a byte of a body that was asked for, ms. */
  readonly idleMs: number
}

/** A complete small answer: to an upload, or instead of an object's bytes. */
export interface Answer {
  readonly status: number
  readonly headers: http.IncomingHttpHeaders
  /** At most 16 KiB. */
  readonly text: string
}

/**
 * The transport of object bytes. node:http, because it costs half of what undici does per byte on Node 20, and because it sends a path as it
 * is given (`..` and `//` may be part of a key). Nothing else of the gateway client knows of sockets.
 */
export class RestClient {
  readonly timeoutMs: number
  readonly idleMs: number
  readonly #url: URL
  readonly #basePath: string
  readonly #request: typeof http.request
  // Two, so that copies (a download that waits for its upload) could never starve each other if sockets were bounded.
  readonly #up: http.Agent
  readonly #down: http.Agent

  constructor(options: RestOptions) {
    const { url } = options
    this.#url = url
    this.#basePath = url.pathname.replace(/\/+$/, '')
    this.timeoutMs = options.timeoutMs
    this.idleMs = options.idleMs
    const secure = url.protocol === 'https:'
    this.#request = secure ? https.request : http.request
    const agent = (extra: object) => {
      const settings = { keepAlive: true, maxFreeSockets: MAX_FREE_SOCKETS, noDelay: true, ...extra }
      return secure ? new https.Agent(settings) : new http.Agent(settings)
    }
    this.#up = agent({})
    // Agents hand unknown options on to the socket, and a response reads ahead as far as its socket.
    this.#down = agent({ highWaterMark: READ_AHEAD_BYTES })
  }

  /** Begins a PUT; nothing is waited for. `fresh`: on a new connection. */
  put(path: string, headers: http.OutgoingHttpHeaders, fresh: boolean): ClientRequest {
    return this.#open('PUT', fresh ? false : this.#up, path, headers)
  }

  /** The head of the answer to a GET or HEAD, sent again once when the connection was lost before it. Throws S3Error. */
  async get(method: 'GET' | 'HEAD', path: string, headers: http.OutgoingHttpHeaders = {}): Promise<IncomingMessage> {
    try {
      return await this.#head(this.#open(method, this.#down, path, headers).end())
    } catch (error) {
      if (!isLostConnection(error)) throw unavailable(error)
    }
    try {
      return await this.#head(this.#open(method, false, path, headers).end())
    } catch (error) {
      throw unavailable(error)
    }
  }

  close(): void {
    this.#up.destroy()
    this.#down.destroy()
  }

  #open(method: string, agent: http.Agent | false, path: string, headers: http.OutgoingHttpHeaders): ClientRequest {
    return this.#request({
      protocol: this.#url.protocol,
      hostname: this.#url.hostname.replace(/^\[(.*)\]$/, '$1'),
      port: this.#url.port,
      agent,
      method,
      path: this.#basePath + path,
      headers: { 'user-agent': USER_AGENT, ...headers },
    })
  }

  #head(request: ClientRequest): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => request.destroy(timedOut('the first byte')), this.timeoutMs)
      request.once('response', (response) => {
        clearTimeout(timer)
        // A response that nobody reads any more may still break; it must not take the process with it.
        response.on('error', () => {})
        resolve(response)
      })
      request.on('error', (error) => {
        clearTimeout(timer)
        reject(error)
      })
    })
  }
}

/** An answer that is no success, in the form that `translate` takes. */
export function httpFailure(names: BrandNames, answer: Answer): UpstreamFailure & { kind: 'http' } {
  const headerCode = single(answer.headers[names.header('error-code')])
  return { kind: 'http', status: answer.status, text: answer.text, headerCode }
}

/** Reads what is left of a small answer; a longer one is cut and its connection closed. Never fails: what arrived is what there is. */
export function readAnswer(response: IncomingMessage, idleMs: number): Promise<Answer> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = []
    let size = 0
    const finish = () => {
      clearTimeout(timer)
      const text = Buffer.concat(chunks).subarray(0, MAX_TEXT_BYTES).toString('utf8')
      resolve({ status: response.statusCode ?? 0, headers: response.headers, text })
    }
    const timer = setTimeout(() => response.destroy(), idleMs)
    response.on('data', (chunk: Buffer) => {
      chunks.push(chunk)
      size += chunk.length
      if (size > MAX_TEXT_BYTES) response.destroy()
    })
    response.once('close', finish)
    response.on('error', () => {})
  })
}

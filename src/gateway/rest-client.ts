import http, { type ClientRequest } from 'node:http'
import https from 'node:https'
import type { BrandNames } from './brand.js'
import { isLostConnection, timedOut, type UpstreamFailure, unavailable } from './errors.js'
import { single } from './object-facts.js'
import { USER_AGENT } from './rpc.js'
import { ConnectionPool } from './transport/connection-pool.js'
import { NodeResponse } from './transport/node-response.js'
import type { RestResponse } from './transport/response.js'

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
 * The transport of object bytes. Uploads and TLS go through node:http, which costs half of what undici does per byte on Node 20; downloads over plain HTTP
 * through connections of our own, which cost a third of that again. Both send a path as it is given (`..` and `//` may be part of a key). Nothing but this
 * and `transport/` knows of sockets.
 */
export class RestClient {
  readonly timeoutMs: number
  readonly idleMs: number
  readonly #url: URL
  readonly #basePath: string
  readonly #request: typeof http.request
  // Two, so that copies (a download that waits for its upload) could never starve each other if sockets were bounded.
  readonly #up: http.Agent
  readonly #down: ConnectionPool | https.Agent

  constructor(options: RestOptions) {
    const { url } = options
    this.#url = url
    this.#basePath = url.pathname.replace(/\/+$/, '')
    this.timeoutMs = options.timeoutMs
    this.idleMs = options.idleMs
    const secure = url.protocol === 'https:'
    this.#request = secure ? https.request : http.request
    const settings = { keepAlive: true, maxFreeSockets: MAX_FREE_SOCKETS, noDelay: true }
    this.#up = secure ? new https.Agent(settings) : new http.Agent(settings)
    // Agents hand unknown options on to the socket, and a response reads ahead as far as its socket.
    const ahead: object = { highWaterMark: READ_AHEAD_BYTES }
    this.#down = secure ? new https.Agent({ ...settings, ...ahead }) : new ConnectionPool(url)
  }

  /** Begins a PUT; nothing is waited for. `fresh`: on a new connection. */
  put(path: string, headers: http.OutgoingHttpHeaders, fresh: boolean): ClientRequest {
    return this.#open('PUT', fresh ? false : this.#up, path, headers)
  }

  /** The head of the answer to a GET or HEAD, sent again once when the connection was lost before it. Throws S3Error. */
  async get(method: 'GET' | 'HEAD', path: string, headers: http.OutgoingHttpHeaders = {}): Promise<RestResponse> {
    try {
      return await this.#get(method, path, headers, false)
    } catch (error) {
      if (!isLostConnection(error)) throw unavailable(error)
    }
    try {
      return await this.#get(method, path, headers, true)
    } catch (error) {
      throw unavailable(error)
    }
  }

  close(): void {
    this.#up.destroy()
    if (this.#down instanceof ConnectionPool) this.#down.close()
    else this.#down.destroy()
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

  #get(method: 'GET' | 'HEAD', path: string, headers: http.OutgoingHttpHeaders, fresh: boolean): Promise<RestResponse> {
    const down = this.#down
    if (!(down instanceof ConnectionPool))
      return this.#head(this.#open(method, fresh ? false : down, path, headers).end())
    return down.request(method, this.#basePath + path, { 'user-agent': USER_AGENT, ...headers }, fresh, this.timeoutMs)
  }

  #head(request: ClientRequest): Promise<RestResponse> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => request.destroy(timedOut('the first byte')), this.timeoutMs)
      request.once('response', (message) => {
        clearTimeout(timer)
        resolve(new NodeResponse(message))
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
export function readAnswer(response: RestResponse, idleMs: number): Promise<Answer> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = []
    let size = 0
    const timer = setTimeout(() => response.destroy(), idleMs)
    const finish = () => {
      clearTimeout(timer)
      const text = Buffer.concat(chunks).subarray(0, MAX_TEXT_BYTES).toString('utf8')
      resolve({ status: response.status, headers: response.headers, text })
    }
    response.read(
      {
        data(chunk, done) {
          chunks.push(Buffer.from(chunk))
          size += chunk.length
          done()
          if (size > MAX_TEXT_BYTES) response.destroy()
        },
        end: finish,
        failed: finish,
      },
      1,
    )
  })
}

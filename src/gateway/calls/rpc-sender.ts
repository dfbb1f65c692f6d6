import type { OutgoingHttpHeaders } from 'node:http'
import type { BrandNames } from '../brand.js'
import {
  isLostConnection,
  isTokenRefusal,
  isUnknownService,
  nonsense,
  ServiceUnknown,
  type Subject,
  TokenRefused,
  timedOut,
  translate,
  type UpstreamFailure,
  unavailable,
} from '../errors.js'
import { USER_AGENT } from '../gateway-call.js'
import { chunksOf, type RestResponse, readAll } from '../transport/response.js'
import { ask, FRESH_MS, type Wire } from '../transport/wire.js'

/** Largest reply that is buffered, bytes: a page of 1000 entries with keys of 1024 bytes, escaped, fits. */
const MAX_REPLY_BYTES = 16 * 1024 * 1024

/** Most bytes of an error body that are read. */
const MAX_ERROR_BYTES = 16 * 1024

export interface RpcSenderOptions {
  readonly wire: Wire
  /**
   * Calls at a time, and as many replies that are read while they arrive. Calls with `late` do not count: they take a
   * long time and must not delay other calls.
   */
  readonly maxCalls: number
  /** Path of the gateway's address, '' or `/something`. */
  readonly basePath: string
  readonly names: BrandNames
  /** Longest wait for the head of the answer, ms. */
  readonly timeoutMs: number
  /** Longest pause between two pieces of an answer, ms. */
  readonly idleMs: number
}

/** Sends a call and receives its answer, as text or while it arrives, on the connections of downloads. */
export class RpcSender {
  readonly #options: RpcSenderOptions
  readonly #slots: CallSlots
  readonly #streamSlots: CallSlots

  constructor(options: RpcSenderOptions) {
    this.#options = options
    this.#slots = new CallSlots(options.maxCalls)
    this.#streamSlots = new CallSlots(options.maxCalls)
  }

  /** Calls that wait for others to end. */
  get waiting(): number {
    return this.#slots.waiting + this.#streamSlots.waiting
  }

  /** The text of the reply. @param spelled the method as the gateway knows it */
  async exchange(call: RpcCall, spelled: string): Promise<string> {
    const work = async () => {
      const response = await this.#send(call, spelled)
      return readAll(response, MAX_REPLY_BYTES, this.#options.idleMs).catch((error: unknown) => {
        throw unavailable(error)
      })
    }
    const bytes = await (call.late ? work() : this.#slots.run(call.method, this.#timeoutMs(call), work))
    if (bytes === undefined) throw nonsense(`answered ${call.method} with more than ${MAX_REPLY_BYTES} bytes`)
    return bytes.toString('utf8')
  }

  /** Passes the chunks of the reply to `read` while they arrive; it rejects as the connection does. */
  open<T>(call: RpcCall, spelled: string, read: (chunks: AsyncIterable<Buffer>) => Promise<T>): Promise<T> {
    return this.#streamSlots.run(call.method, this.#timeoutMs(call), async () =>
      read(chunksOf(await this.#send(call, spelled), this.#options.idleMs)),
    )
  }

  #timeoutMs(call: RpcCall): number {
    return call.timeoutMs ?? this.#options.timeoutMs
  }

  /** Resolves with the head of a reply in JSON. */
  async #send(call: RpcCall, spelled: string): Promise<RestResponse> {
    const { wire, idleMs } = this.#options
    const response = await post(wire, this.#request(call, spelled), {
      what: call.method,
      repeatable: call.repeatable ?? false,
      timeoutMs: this.#timeoutMs(call),
    })
    if (response.status !== 200) {
      const text = await readAll(response, MAX_ERROR_BYTES, idleMs).catch(() => undefined)
      throw refusal(response.status, text?.toString('utf8') ?? '', call)
    }
    if (!/^application\/json\b/i.test(String(response.headers['content-type'] ?? ''))) {
      response.destroy()
      throw nonsense(`answered ${call.method} without JSON`)
    }
    return response
  }

  #request(call: RpcCall, spelled: string) {
    const { basePath, names } = this.#options
    const headers: Record<string, string> = { 'user-agent': USER_AGENT, 'content-type': 'application/json' }
    if (call.token !== undefined) headers.authorization = `Bearer ${call.token}`
    for (const name in call.headers) headers[name] = call.headers[name] as string
    return {
      path: basePath + names.rpcPath,
      headers,
      body: JSON.stringify({ id: '1', jsonrpc: '2.0', method: spelled, params: call.params }),
    }
  }
}

/** Runs a bounded number of calls at a time, first in, first out. */
class CallSlots {
  #free: number
  readonly #waiting = new Set<() => void>()

  constructor(count: number) {
    this.#free = count
  }

  /** Calls that wait for a slot. */
  get waiting(): number {
    return this.#waiting.size
  }

  /**
   * @param what names the call in errors
   * @throws S3Error ServiceUnavailable when no slot becomes free in time; the call was not sent then
   */
  async run<T>(what: string, timeoutMs: number, call: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--
    else await this.#slot(what, timeoutMs)
    try {
      return await call()
    } finally {
      this.#release()
    }
  }

  #slot(what: string, timeoutMs: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const begin = () => {
        clearTimeout(timer)
        resolve()
      }
      const timer = setTimeout(() => {
        this.#waiting.delete(begin)
        reject(unavailable(timedOut(what)))
      }, timeoutMs)
      this.#waiting.add(begin)
    })
  }

  /** A waiting call takes the slot over. */
  #release(): void {
    const [next] = this.#waiting
    if (!next) {
      this.#free++
      return
    }
    this.#waiting.delete(next)
    next()
  }
}

interface Post {
  readonly path: string
  readonly headers: OutgoingHttpHeaders
  readonly body: string
}

interface PostOptions {
  /** Names the request in errors. */
  readonly what: string
  /** It is sent once more, on a new connection, if the connection is lost before the head of the answer. */
  readonly repeatable: boolean
  /** Longest wait for the head of the answer, ms. */
  readonly timeoutMs: number
}

/** Sends a POST and resolves when the head of the answer has arrived. Throws S3Error. */
async function post(
  wire: Wire,
  { path, headers, body }: Post,
  { what, repeatable, timeoutMs }: PostOptions,
): Promise<RestResponse> {
  const request = { method: 'POST', path, headers, body: Buffer.from(body) }
  try {
    return await ask(wire, { ...request, maxIdleMs: repeatable ? undefined : FRESH_MS }, timeoutMs, what)
  } catch (error) {
    if (!(repeatable && isLostConnection(error))) throw unavailable(error)
  }
  try {
    return await ask(wire, { ...request, maxIdleMs: 0 }, timeoutMs, what)
  } catch (error) {
    throw unavailable(error)
  }
}

/** The error for an answer other than 200. */
function refusal(status: number, text: string, call: RpcCall): Error {
  return rpcFailure({ kind: 'http', status, text, headerCode: undefined, toCall: true }, call)
}

export interface RpcCall {
  readonly method: string
  /** Named parameters. */
  readonly params: object
  /** Bearer token. Absent for web.Login only. */
  readonly token?: string
  /** The call may be repeated when the connection is lost before an answer. */
  readonly repeatable?: boolean
  readonly headers?: Readonly<Record<string, string>>
  readonly subject?: Subject
  /** Replaces RpcOptions.timeoutMs. */
  readonly timeoutMs?: number
  /**
   * Receives the outcome of a call that timed out. The connection stays open until then, so that the answer can still
   * arrive.
   */
  readonly late?: (outcome: Promise<RpcResult>) => void
}

export function rpcFailure(failure: UpstreamFailure, call: RpcCall): Error {
  const error = translate(failure, call.subject ?? {})
  if (isUnknownService(failure)) return new ServiceUnknown(error)
  return isTokenRefusal(failure) && call.token !== undefined ? new TokenRefused(error) : error
}

export type RpcResult = Readonly<Record<string, unknown>>

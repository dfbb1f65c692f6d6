import type { Dispatcher, Pool } from 'undici'
import { withinDeadline } from '../../common/deadline.js'
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
  unavailable,
} from '../errors.js'
import type { ConnectionPool } from '../transport/connection-pool.js'
import { readAll } from '../transport/read-all.js'
import { type GatewayWatch, watching } from '../watch.js'
import { LATE_ANSWER_MS } from './in-doubt.js'
import { post } from './post.js'

/**
 * The gateway's routes require `Mozilla` in this header; without it a request means something else (MinIO
 * cmd/web-router.go).
 */
export const USER_AGENT = 'Mozilla/5.0 (compatible; dealgate)'

/** Largest reply that is buffered, bytes: a page of 1000 entries with keys of 1024 bytes, escaped, fits. */
const MAX_REPLY_BYTES = 16 * 1024 * 1024
/** Most bytes of an error body that are read. */
const MAX_ERROR_BYTES = 16 * 1024

export interface RpcOptions {
  /** For whole replies over plain HTTP. Undefined over TLS. */
  readonly connections: ConnectionPool | undefined
  readonly pool: Pool
  /** For calls with `late`: they occupy their connections for a long time and must not delay other calls. */
  readonly patientPool: Pool
  /** Path of the gateway's address, '' or `/something`. */
  readonly basePath: string
  readonly names: BrandNames
  /** Longest wait for the head of the answer, ms. */
  readonly timeoutMs: number
  /** Longest pause between two pieces of an answer, ms. */
  readonly idleMs: number
  readonly watch: GatewayWatch
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

export type RpcResult = Readonly<Record<string, unknown>>

/**
 * The word before the dot of a method. MinIO registers the service as `Web` up to RELEASE.2020-11-19 and as `web`
 * afterwards (cmd/web-router.go); its JSON-RPC library is case-sensitive.
 */
type ServiceWord = 'web' | 'Web'

/** JSON-RPC 2.0 over `POST /gateway/webrpc`. Errors come with HTTP 200 and no `result`. */
export class Rpc {
  readonly #options: RpcOptions
  #word: ServiceWord = 'web'

  constructor(options: RpcOptions) {
    this.#options = options
  }

  /** Throws S3Error, or TokenRefused when another token may help. */
  call(call: RpcCall): Promise<RpcResult> {
    return this.withServiceWord(() => this.#callInTime(call))
  }

  /**
   * Runs `ask`, which makes one call. A gateway that does not know the service has done nothing: `ask` then runs once
   * more with the other word, which is kept. Throws what `ask` throws, and S3Error NotImplemented when the gateway
   * knows neither word.
   */
  async withServiceWord<T>(ask: () => Promise<T>): Promise<T> {
    const tried = this.#word
    try {
      return await ask()
    } catch (error) {
      if (!(error instanceof ServiceUnknown)) throw error
    }
    // A concurrent call may have found the other word by now.
    if (this.#word === tried) this.#word = tried === 'web' ? 'Web' : 'web'
    try {
      return await ask()
    } catch (error) {
      throw error instanceof ServiceUnknown ? error.final : error
    }
  }

  async #callInTime(call: RpcCall): Promise<RpcResult> {
    const { late, timeoutMs = this.#options.timeoutMs } = call
    if (!late) return this.#callOnce(call)
    const outcome = this.#callOnce({ ...call, timeoutMs: LATE_ANSWER_MS })
    outcome.catch(() => {})
    return withinDeadline(outcome, timeoutMs, () => {
      late(outcome)
      return unavailable(timedOut(call.method))
    })
  }

  /** Runs `use` with the call as the watch wants it sent. For callers of `open`; `call` does it itself. */
  watched<T>(call: RpcCall, use: (call: RpcCall) => Promise<T>): Promise<T> {
    return watching(this.#options.watch, ['POST', call.method], (headers) =>
      use({ ...call, headers: { ...call.headers, ...headers } }),
    )
  }

  #callOnce(call: RpcCall): Promise<RpcResult> {
    return this.watched(call, (call) => this.#exchange(call))
  }

  async #exchange(call: RpcCall): Promise<RpcResult> {
    const { connections } = this.#options
    const bytes = connections ? await this.#overWire(connections, call) : await this.#readBody(await this.open(call))
    if (bytes === undefined) throw nonsense(`answered ${call.method} with more than ${MAX_REPLY_BYTES} bytes`)
    return this.resultOf(parseReply(bytes.toString('utf8'), call.method), call)
  }

  #readBody(body: Dispatcher.ResponseData['body']): Promise<Buffer | undefined> {
    return readBounded(body, MAX_REPLY_BYTES).catch((error: unknown) => {
      throw unavailable(error)
    })
  }

  async #overWire(connections: ConnectionPool, call: RpcCall): Promise<Buffer | undefined> {
    const { idleMs, timeoutMs } = this.#options
    const response = await post(connections, this.#request(call), {
      what: call.method,
      repeatable: call.repeatable ?? false,
      timeoutMs: call.timeoutMs ?? timeoutMs,
    })
    if (response.status !== 200) {
      const text = await readAll(response, MAX_ERROR_BYTES, idleMs).catch(() => undefined)
      throw this.#failure(refused(response.status, text?.toString('utf8') ?? ''), call)
    }
    if (!isJson(response.headers['content-type'])) {
      response.destroy()
      throw answeredWithoutJson(call)
    }
    return readAll(response, MAX_REPLY_BYTES, idleMs).catch((error: unknown) => {
      throw unavailable(error)
    })
  }

  /**
   * The body of a reply while it arrives. The reader passes the parsed envelope to `resultOf` or destroys the body.
   * Throws like `call`. Call it within `withServiceWord`.
   */
  async open(call: RpcCall): Promise<Dispatcher.ResponseData['body']> {
    const reply = await this.#send(call)
    if (reply.statusCode !== 200) {
      const text = await readText(reply.body)
      throw this.#failure(refused(reply.statusCode, text), call)
    }
    if (!isJson(reply.headers['content-type'])) {
      reply.body.destroy()
      reply.body.on('error', () => {})
      throw answeredWithoutJson(call)
    }
    return reply.body
  }

  /**
   * Extracts `result` from a reply. A reply without one is a failure, whatever else it holds. Throws like `call`, and
   * ServiceUnknown.
   */
  resultOf(reply: Readonly<Record<string, unknown>>, call: RpcCall): RpcResult {
    if (isRecord(reply.result)) return reply.result
    const error = reply.error
    if (!isRecord(error)) throw nonsense(`answered ${call.method} with neither result nor error`)
    const data = error.data
    const dataCode = isRecord(data) && typeof data.code === 'string' ? data.code : undefined
    const fence = isRecord(data) && typeof data.fence === 'number' ? data.fence : undefined
    throw this.#failure({ kind: 'rpc', text: String(error.message ?? ''), dataCode, fence }, call)
  }

  async #send(call: RpcCall): Promise<Dispatcher.ResponseData> {
    const { timeoutMs, idleMs } = this.#options
    const pool = call.late ? this.#options.patientPool : this.#options.pool
    const request: Dispatcher.RequestOptions = {
      method: 'POST',
      ...this.#request(call),
      headersTimeout: call.timeoutMs ?? timeoutMs,
      bodyTimeout: idleMs,
    }
    try {
      return await pool.request(request)
    } catch (error) {
      if (!(call.repeatable && isLostConnection(error))) throw unavailable(error)
    }
    try {
      return await pool.request(request)
    } catch (error) {
      throw unavailable(error)
    }
  }

  #request(call: RpcCall) {
    const { basePath, names } = this.#options
    const token = call.token === undefined ? undefined : { authorization: `Bearer ${call.token}` }
    return {
      path: basePath + names.rpcPath,
      headers: { 'user-agent': USER_AGENT, 'content-type': 'application/json', ...token, ...call.headers },
      body: JSON.stringify({ id: '1', jsonrpc: '2.0', method: this.#spelled(call.method), params: call.params }),
    }
  }

  #spelled(method: string): string {
    return method.replace(/^web\./, `${this.#word}.`)
  }

  #failure(failure: Parameters<typeof translate>[0], call: RpcCall): Error {
    const error = translate(failure, call.subject ?? {})
    if (isUnknownService(failure)) return new ServiceUnknown(error)
    return isTokenRefusal(failure) && call.token !== undefined ? new TokenRefused(error) : error
  }
}

function refused(status: number, text: string) {
  return { kind: 'http', status, text, headerCode: undefined } as const
}

function isJson(contentType: string | string[] | undefined): boolean {
  return /^application\/json\b/i.test(String(contentType ?? ''))
}

function answeredWithoutJson(call: RpcCall): Error {
  return nonsense(`answered ${call.method} without JSON`)
}

/** Reads the first bytes of an error body. Never fails. */
async function readText(body: Dispatcher.ResponseData['body']): Promise<string> {
  const bytes = await readBounded(body, MAX_ERROR_BYTES).catch(() => undefined)
  return bytes?.toString('utf8') ?? ''
}

/** Resolves undefined when the body has more than `max` bytes. */
export async function readBounded(body: AsyncIterable<Buffer>, max: number): Promise<Buffer | undefined> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of body) {
    size += chunk.length
    if (size > max) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks, size)
}

export function parseReply(text: string, method: string): Readonly<Record<string, unknown>> {
  try {
    const parsed: unknown = JSON.parse(text)
    if (isRecord(parsed)) return parsed
  } catch {
    // The check below reports it like any other invalid reply.
  }
  throw nonsense(`answered ${method} with JSON that cannot be read`)
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

import type { Dispatcher, Pool } from 'undici'
import type { Logger } from '../log.js'
import type { BrandNames } from './brand.js'
import {
  isLostConnection,
  isTokenRefusal,
  nonsense,
  type Subject,
  TokenRefused,
  translate,
  unavailable,
} from './errors.js'

/** Every request to the gateway needs `Mozilla` here; without it the request means something else (MinIO cmd/web-router.go). */
export const USER_AGENT = 'Mozilla/5.0 (compatible; dealgate)'

/** Largest reply that is read whole, bytes: a page of 1000 entries with keys of 1024 bytes, escaped, fits. */
const MAX_REPLY_BYTES = 16 * 1024 * 1024
/** Most of an error body that is looked at, bytes. */
const MAX_ERROR_BYTES = 16 * 1024

export interface RpcOptions {
  readonly pool: Pool
  /** Path of the gateway's address, '' or `/something`. */
  readonly basePath: string
  readonly names: BrandNames
  readonly log: Logger
  /** Until the head of the answer is there, ms. */
  readonly timeoutMs: number
  /** Between two pieces of an answer, ms. */
  readonly idleMs: number
}

export interface RpcCall {
  readonly method: string
  /** Named parameters. */
  readonly params: object
  /** Bearer token; absent for web.Login only. */
  readonly token?: string
  /** May be sent again when the connection was lost before an answer came. */
  readonly repeatable?: boolean
  readonly headers?: Readonly<Record<string, string>>
  readonly subject?: Subject
  /** Instead of RpcOptions.timeoutMs. */
  readonly timeoutMs?: number
}

export type RpcResult = Readonly<Record<string, unknown>>

/** JSON-RPC 2.0 over `POST /gateway/webrpc`. Errors come with HTTP 200 and no `result`. */
export class Rpc {
  readonly #options: RpcOptions

  constructor(options: RpcOptions) {
    this.#options = options
  }

  /** Throws S3Error, or TokenRefused when another token may help. */
  async call(call: RpcCall): Promise<RpcResult> {
    const body = await this.open(call)
    const bytes = await readBounded(body, MAX_REPLY_BYTES).catch((error: unknown) => {
      throw unavailable(error)
    })
    if (bytes === undefined) throw nonsense(`answered ${call.method} with more than ${MAX_REPLY_BYTES} bytes`)
    return this.resultOf(parseReply(bytes.toString('utf8'), call.method), call)
  }

  /** The body of a reply as it arrives. Whoever reads it passes the parsed envelope to `resultOf`, or destroys it. Throws as `call`. */
  async open(call: RpcCall): Promise<Dispatcher.ResponseData['body']> {
    const reply = await this.#send(call)
    if (reply.statusCode !== 200) {
      const text = await readText(reply.body)
      throw this.#failure({ kind: 'http', status: reply.statusCode, text, headerCode: undefined }, call)
    }
    if (!/^application\/json\b/i.test(String(reply.headers['content-type'] ?? ''))) {
      reply.body.destroy()
      reply.body.on('error', () => {})
      throw nonsense(`answered ${call.method} with something other than JSON`)
    }
    return reply.body
  }

  /** `result` of a reply; a reply without one is a failure whatever else it holds. Throws as `call`. */
  resultOf(reply: Readonly<Record<string, unknown>>, call: RpcCall): RpcResult {
    if (isRecord(reply.result)) return reply.result
    const error = reply.error
    if (!isRecord(error)) throw nonsense(`answered ${call.method} with neither result nor error`)
    const data = error.data
    const dataCode = isRecord(data) && typeof data.code === 'string' ? data.code : undefined
    throw this.#failure({ kind: 'rpc', text: String(error.message ?? ''), dataCode }, call)
  }

  async #send(call: RpcCall): Promise<Dispatcher.ResponseData> {
    const { pool, basePath, names, timeoutMs, idleMs } = this.#options
    const request: Dispatcher.RequestOptions = {
      method: 'POST',
      path: basePath + names.rpcPath,
      headers: {
        'user-agent': USER_AGENT,
        'content-type': 'application/json',
        ...(call.token === undefined ? {} : { authorization: `Bearer ${call.token}` }),
        ...call.headers,
      },
      body: JSON.stringify({ id: '1', jsonrpc: '2.0', method: call.method, params: call.params }),
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

  #failure(failure: Parameters<typeof translate>[0], call: RpcCall): Error {
    const error = translate(failure, call.subject ?? {}, this.#options.log)
    return isTokenRefusal(failure) && call.token !== undefined ? new TokenRefused(error) : error
  }
}

/** The first bytes of an error body; never fails. */
async function readText(body: Dispatcher.ResponseData['body']): Promise<string> {
  const bytes = await readBounded(body, MAX_ERROR_BYTES).catch(() => undefined)
  return bytes?.toString('utf8') ?? ''
}

/** Undefined when there is more than `max`. */
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
    // Reported below like any other reply that is none.
  }
  throw nonsense(`answered ${method} with JSON that cannot be read`)
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

import type { Dispatcher, Pool } from 'undici'
import type { BrandNames } from '../brand.js'
import { isLostConnection, nonsense, unavailable } from '../errors.js'
import type { ConnectionPool } from '../transport/connection-pool.js'
import { readAll } from '../transport/read-all.js'
import { CallSlots } from './call-slots.js'
import { post } from './post.js'
import type { RpcCall } from './rpc-call.js'
import { answeredWithoutJson, isJson, readBounded, refusal } from './rpc-reply.js'
import { USER_AGENT } from './user-agent.js'

/** Largest reply that is buffered, bytes: a page of 1000 entries with keys of 1024 bytes, escaped, fits. */
const MAX_REPLY_BYTES = 16 * 1024 * 1024
/** Most bytes of an error body that are read. */
const MAX_ERROR_BYTES = 16 * 1024

export interface RpcSenderOptions {
  /** For whole replies over plain HTTP. Undefined over TLS. */
  readonly connections: ConnectionPool | undefined
  /** Calls at a time on `connections`, without those with `late`. */
  readonly maxCalls: number
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
}

/** Sends a call and receives its answer, as text or while it arrives. */
export class RpcSender {
  readonly #options: RpcSenderOptions
  readonly #slots: CallSlots

  constructor(options: RpcSenderOptions) {
    this.#options = options
    this.#slots = new CallSlots(options.maxCalls)
  }

  /** Calls that wait for others on plain HTTP to end. */
  get waiting(): number {
    return this.#slots.waiting
  }

  /** The text of the reply. @param spelled the method as the gateway knows it */
  async exchange(call: RpcCall, spelled: string): Promise<string> {
    const bytes = await this.#wholeReply(call, spelled)
    if (bytes === undefined) throw nonsense(`answered ${call.method} with more than ${MAX_REPLY_BYTES} bytes`)
    return bytes.toString('utf8')
  }

  /** The body of the reply while it arrives. */
  async open(call: RpcCall, spelled: string): Promise<Dispatcher.ResponseData['body']> {
    const reply = await this.#send(call, spelled)
    if (reply.statusCode !== 200) {
      const text = await readText(reply.body)
      throw refusal(reply.statusCode, text, call)
    }
    if (!isJson(reply.headers['content-type'])) {
      reply.body.destroy()
      reply.body.on('error', () => {})
      throw answeredWithoutJson(call)
    }
    return reply.body
  }

  async #wholeReply(call: RpcCall, spelled: string): Promise<Buffer | undefined> {
    const { connections, timeoutMs } = this.#options
    if (!connections) {
      const body = await this.open(call, spelled)
      return readBounded(body, MAX_REPLY_BYTES).catch((error: unknown) => {
        throw unavailable(error)
      })
    }
    const work = () => this.#overWire(connections, call, spelled)
    return call.late ? work() : this.#slots.run(call.method, call.timeoutMs ?? timeoutMs, work)
  }

  async #overWire(connections: ConnectionPool, call: RpcCall, spelled: string): Promise<Buffer | undefined> {
    const { idleMs, timeoutMs } = this.#options
    const response = await post(connections, this.#request(call, spelled), {
      what: call.method,
      repeatable: call.repeatable ?? false,
      timeoutMs: call.timeoutMs ?? timeoutMs,
    })
    if (response.status !== 200) {
      const text = await readAll(response, MAX_ERROR_BYTES, idleMs).catch(() => undefined)
      throw refusal(response.status, text?.toString('utf8') ?? '', call)
    }
    if (!isJson(response.headers['content-type'])) {
      response.destroy()
      throw answeredWithoutJson(call)
    }
    return readAll(response, MAX_REPLY_BYTES, idleMs).catch((error: unknown) => {
      throw unavailable(error)
    })
  }

  async #send(call: RpcCall, spelled: string): Promise<Dispatcher.ResponseData> {
    const { timeoutMs, idleMs } = this.#options
    const pool = call.late ? this.#options.patientPool : this.#options.pool
    const request: Dispatcher.RequestOptions = {
      method: 'POST',
      ...this.#request(call, spelled),
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

/** Reads the first bytes of an error body. Never fails. */
async function readText(body: Dispatcher.ResponseData['body']): Promise<string> {
  const bytes = await readBounded(body, MAX_ERROR_BYTES).catch(() => undefined)
  return bytes?.toString('utf8') ?? ''
}

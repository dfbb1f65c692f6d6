import { isRecord, parseObject } from '../../../common/json.js'
import { withinDeadline } from '../../../common/time.js'
import { nonsense, ServiceUnknown, timedOut, unavailable } from '../errors.js'
import { type GatewayWatch, watching } from '../gateway-call.js'
import { LATE_ANSWER_MS } from './in-doubt.js'
import { type RpcCall, type RpcResult, RpcSender, type RpcSenderOptions, rpcFailure } from './rpc-sender.js'

interface RpcOptions extends RpcSenderOptions {
  readonly watch: GatewayWatch
}

/**
 * The word before the dot of a method. MinIO registers the service as `Web` up to RELEASE.2020-11-19 and as `web`
 * afterwards (cmd/web-router.go); its JSON-RPC library is case-sensitive.
 */
type ServiceWord = 'web' | 'Web'

/**
 * JSON-RPC 2.0 over `POST /gateway/webrpc`. Errors come with HTTP 200 and no `result`. This file decides how a call is
 * made and repeated and reads the reply; `rpc-sender.ts` sends it.
 */
export class Rpc {
  readonly #options: RpcOptions
  readonly #sender: RpcSender
  #word: ServiceWord = 'web'

  constructor(options: RpcOptions) {
    this.#options = options
    this.#sender = new RpcSender(options)
  }

  /** Calls that wait for others to end. */
  get waiting(): number {
    return this.#sender.waiting
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
      use(Object.keys(headers).length === 0 ? call : { ...call, headers: { ...call.headers, ...headers } }),
    )
  }

  #callOnce(call: RpcCall): Promise<RpcResult> {
    return this.watched(call, async (call) => {
      const text = await this.#sender.exchange(call, this.#spelled(call.method))
      return this.resultOf(parseReply(text, call.method), call)
    })
  }

  /**
   * Passes the chunks of a reply to `read` while they arrive. It passes the parsed envelope to `resultOf`, or leaves
   * early. Throws like `call`. Call it within `withServiceWord`.
   */
  open<T>(call: RpcCall, read: (chunks: AsyncIterable<Buffer>) => Promise<T>): Promise<T> {
    return this.#sender.open(call, this.#spelled(call.method), read)
  }

  /**
   * Extracts `result` from a reply. A reply without one is a failure, whatever else it holds. Throws like `call`, and
   * ServiceUnknown.
   */
  resultOf(reply: Readonly<Record<string, unknown>>, call: RpcCall): RpcResult {
    return resultOf(reply, call)
  }

  #spelled(method: string): string {
    return method.replace(/^web\./, `${this.#word}.`)
  }
}

/**
 * Extracts `result` from a reply. A reply without one is a failure, whatever else it holds. Throws S3Error,
 * TokenRefused, ServiceUnknown.
 */
function resultOf(reply: Readonly<Record<string, unknown>>, call: RpcCall): RpcResult {
  if (isRecord(reply.result)) return reply.result
  const error = reply.error
  if (!isRecord(error)) throw nonsense(`answered ${call.method} with neither result nor error`)
  const data = error.data
  const dataCode = isRecord(data) && typeof data.code === 'string' ? data.code : undefined
  const fence = isRecord(data) && typeof data.fence === 'number' ? data.fence : undefined
  throw rpcFailure({ kind: 'rpc', text: String(error.message ?? ''), dataCode, fence }, call)
}

function parseReply(text: string, method: string): Readonly<Record<string, unknown>> {
  const reply = parseObject(text)
  if (reply === undefined) throw nonsense(`answered ${method} with JSON that cannot be read`)
  return reply
}

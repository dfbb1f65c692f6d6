import { S3Error } from 'dealgate'
import { Agent, request } from 'undici'

export interface PaymentCall {
  readonly method: 'GET' | 'POST'
  /** Segments of the path, not encoded: `['api', 'v1', 'billing']`. */
  readonly path: readonly string[]
  readonly query?: Readonly<Record<string, string | number | undefined>>
  /** JSON. */
  readonly body?: Readonly<Record<string, unknown>>
  /** JWT. */
  readonly token?: string | undefined
  readonly signal?: AbortSignal | undefined
}

export interface PaymentAnswer {
  readonly status: number
  readonly text: string
  /** Undefined for text that is not JSON. */
  readonly json: unknown
  /** Header Retry-After. */
  readonly retryAfter: string | undefined
}

/** The request was sent, at least in part, and its answer did not come: what the service did is unknown. */
export class AnswerLost extends Error {
  override readonly name = 'AnswerLost'
  constructor(
    /** True if it did not come in time. */
    readonly late: boolean,
    options: ErrorOptions,
  ) {
    super(late ? 'the payment service did not answer in time' : 'the answer of the payment service was lost', options)
  }
}

/** Most bytes of an answer. */
export const MAX_ANSWER = 32 * 1024 * 1024
const CONNECTIONS = 32
const CONNECT_MS = 10_000

interface ClientOptions {
  readonly timeoutMs: number
  /** Lower-case name. */
  readonly tokenHeader: string
}

/** The HTTP client of the storage payment API. It repeats nothing and interprets no status. */
export class PaymentClient {
  readonly #base: URL
  readonly #agent: Agent
  readonly #options: ClientOptions

  /** @param url with a path, if the service has one */
  constructor(url: string, options: ClientOptions) {
    this.#base = new URL(url)
    this.#options = options
    this.#agent = new Agent({ connections: CONNECTIONS, connect: { timeout: CONNECT_MS }, pipelining: 1 })
  }

  /** Throws S3Error UpstreamUnavailable if nothing was sent, AnswerLost if that is not certain. */
  async send(call: PaymentCall): Promise<PaymentAnswer> {
    const limit = AbortSignal.timeout(this.#options.timeoutMs)
    try {
      const answer = await request(this.urlOf(call.path, call.query), {
        method: call.method,
        dispatcher: this.#agent,
        signal: call.signal ? AbortSignal.any([call.signal, limit]) : limit,
        // The signal ends a call that is late.
        headersTimeout: 0,
        bodyTimeout: 0,
        headers: {
          ...this.headersOf(call.token),
          ...(call.body !== undefined && { 'content-type': 'application/json' }),
        },
        ...(call.body !== undefined && { body: JSON.stringify(call.body) }),
      })
      const text = await collect(answer.body)
      return answerOf(answer.statusCode, text, answer.headers['retry-after'])
    } catch (cause) {
      if (isUnsent(cause)) throw unreachable(cause)
      throw new AnswerLost(limit.aborted, { cause })
    }
  }

  urlOf(path: readonly string[], query: PaymentCall['query'] = {}): URL {
    const base = this.#base.pathname.replace(/\/+$/, '')
    const url = new URL(`${base}/${path.map(segmentOf).join('/')}`, this.#base)
    for (const [name, value] of Object.entries(query)) if (value !== undefined) url.searchParams.set(name, `${value}`)
    return url
  }

  headersOf(token: string | undefined): Record<string, string> {
    const { tokenHeader } = this.#options
    const headers: Record<string, string> = { accept: 'application/json', 'user-agent': 'dealgate' }
    if (token !== undefined) headers[tokenHeader] = tokenHeader === 'authorization' ? `Bearer ${token}` : token
    return headers
  }

  close(): Promise<void> {
    return this.#agent.destroy()
  }
}

export function answerOf(status: number, text: string, retryAfter: string | string[] | undefined): PaymentAnswer {
  return { status, text, json: parsed(text), retryAfter: typeof retryAfter === 'string' ? retryAfter : undefined }
}

/** Throws RangeError beyond the bound. */
export async function collect(body: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of body) {
    size += chunk.length
    if (size > MAX_ANSWER) throw new RangeError(`the answer has more than ${MAX_ANSWER} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

export function unreachable(cause: unknown): S3Error {
  return new S3Error('UpstreamUnavailable', {
    message: 'The storage payment service cannot be reached. Try again later.',
    headers: { 'retry-after': '2' },
    cause,
  })
}

/** URL parsers remove segments of dots. No id has them. */
function segmentOf(text: string): string {
  if (/^\.{0,2}$/.test(text)) throw new S3Error('InvalidArgument', { message: 'An id in the path is empty or dots.' })
  return encodeURIComponent(text)
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const UNSENT = ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'UND_ERR_CONNECT_TIMEOUT']

/** True if no byte can have reached the other side. */
export function isUnsent(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.length > 0 && error.errors.every(isUnsent)
  return UNSENT.includes(String((error as { readonly code?: unknown } | undefined)?.code))
}

import type { Agent, Dispatcher } from 'undici'
import { readBounded } from './bounded-text.js'
import { S3Error } from './errors/s3-error.js'
import { parseJson } from './json.js'
import { LazyDispatcher } from './lazy-dispatcher.js'

type Fields = Iterable<readonly [name: string, value: string]>

type ServiceBody =
  | { readonly kind: 'json'; readonly value: Readonly<Record<string, unknown>> }
  | { readonly kind: 'form'; readonly fields: Fields }
  | {
      readonly kind: 'multipart'
      readonly fields: Fields
      readonly file?: {
        readonly field: string
        readonly name: string
        readonly type: string
        readonly content: Uint8Array
      }
    }

export interface ServiceCall {
  readonly method: 'GET' | 'POST' | 'PUT'
  /** Segments of the path, not encoded: `['tasks', uuid]`. */
  readonly path: readonly string[]
  readonly query?: Readonly<Record<string, string | number | undefined>>
  /** JWT. */
  readonly token?: string | undefined
  /** Address of the client on whose behalf the call is made, for a service that limits clients. */
  readonly client?: string | undefined
  readonly body?: ServiceBody
  /** Default that of the client. */
  readonly timeoutMs?: number
  readonly signal?: AbortSignal | undefined
}

export interface ServiceAnswer {
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
    /** Name of the service: `task platform`. */
    readonly service: string,
    /** True if it did not come in time. */
    readonly late: boolean,
    options: ErrorOptions,
  ) {
    super(late ? `the ${service} did not answer in time` : `the answer of the ${service} was lost`, options)
  }
}

/** Converts a lost answer of a request that may be repeated. */
export function repeatable(error: unknown): unknown {
  if (!(error instanceof AnswerLost)) return error
  return new S3Error(error.late ? 'UpstreamTimeout' : 'UpstreamUnavailable', { cause: error })
}

/** Converts a lost answer of a request that must not be repeated unseen. */
export function unrepeatable(error: unknown): unknown {
  if (!(error instanceof AnswerLost)) return error
  return new S3Error('OperationAborted', {
    message: `The answer of the ${error.service} was lost, so that this may have been done or not. Look before you repeat it.`,
    cause: error,
  })
}

/** Most bytes of an answer, unless the client has another bound. */
const MAX_ANSWER = 32 * 1024 * 1024
/** How long a call may take, ms. */
const CALL_MS = 30_000
const CONNECTIONS = 32
const CONNECT_MS = 10_000

export interface ServiceClientOptions {
  /** Its name in messages: `task platform`. */
  readonly service: string
  /** With a path, if the service has one. */
  readonly url: string
  /** How long a call may take, ms; default 30 s. */
  readonly timeoutMs?: number
  /** Most bytes of an answer; default 32 MiB. */
  readonly maxBytes?: number
  /** Name of the header with the token, in lower case; default `authorization`, with `Bearer`. */
  readonly tokenHeader?: string
}

/**
 * The client of an HTTP service with answers in JSON, such as the task platform and the payment API. Repeats nothing,
 * follows no redirect, interprets no status. Idle connections end by themselves and keep no process alive.
 */
export class ServiceClient {
  readonly #base: URL
  readonly #agent: LazyDispatcher<Agent>
  readonly #options: ServiceClientOptions

  constructor(options: ServiceClientOptions) {
    this.#base = new URL(options.url)
    this.#options = options
    this.#agent = new LazyDispatcher(
      ({ Agent }) => new Agent({ connections: CONNECTIONS, connect: { timeout: CONNECT_MS }, pipelining: 1 }),
    )
  }

  /** Throws S3Error UpstreamUnavailable if nothing was sent, AnswerLost if that is not certain. */
  async send(call: ServiceCall): Promise<ServiceAnswer> {
    const url = this.urlOf(call.path, call.query)
    const limit = AbortSignal.timeout(call.timeoutMs ?? this.#options.timeoutMs ?? CALL_MS)
    const { type, body } = await encoded(call.body)
    try {
      const agent = await this.#agent.open()
      const answer = await agent.request({
        origin: url.origin,
        path: url.pathname + url.search,
        method: call.method,
        signal: call.signal ? AbortSignal.any([call.signal, limit]) : limit,
        // The signal ends a call that is late.
        headersTimeout: 0,
        bodyTimeout: 0,
        headers: {
          ...this.headersOf(call.token),
          ...(type !== undefined && { 'content-type': type }),
          ...(call.client !== undefined && { 'x-forwarded-for': call.client }),
        },
        ...(body !== undefined && { body }),
      })
      return await readAnswer(answer.statusCode, answer.headers, answer.body, this.#options.maxBytes)
    } catch (cause) {
      throw this.failure(cause, limit.aborted)
    }
  }

  /** The error for a request that failed: UpstreamUnavailable if nothing was sent, AnswerLost otherwise. */
  failure(cause: unknown, late: boolean): S3Error | AnswerLost {
    const { service } = this.#options
    if (!isUnsent(cause)) return new AnswerLost(service, late, { cause })
    return new S3Error('UpstreamUnavailable', {
      message: `The ${service} cannot be reached. Try again later.`,
      headers: { 'retry-after': '2' },
      cause,
    })
  }

  urlOf(path: readonly string[], query: ServiceCall['query'] = {}): URL {
    const base = this.#base.pathname.replace(/\/+$/, '')
    const url = new URL(`${base}/${path.map(segmentOf).join('/')}`, this.#base)
    for (const [name, value] of Object.entries(query)) if (value !== undefined) url.searchParams.set(name, `${value}`)
    return url
  }

  headersOf(token: string | undefined): Record<string, string> {
    const { tokenHeader = 'authorization' } = this.#options
    const headers: Record<string, string> = { accept: 'application/json', 'user-agent': 'dealgate' }
    if (token !== undefined) headers[tokenHeader] = tokenHeader === 'authorization' ? `Bearer ${token}` : token
    return headers
  }

  close(): Promise<void> {
    return this.#agent.destroy()
  }
}

/** URL parsers remove segments of dots. No id has them. */
function segmentOf(text: string): string {
  if (/^\.{0,2}$/.test(text)) throw new S3Error('InvalidArgument', { message: 'An id in the path is empty or dots.' })
  return encodeURIComponent(text)
}

interface Encoded {
  readonly type?: string
  readonly body?: Dispatcher.RequestOptions['body']
}

async function encoded(body: ServiceBody | undefined): Promise<Encoded> {
  switch (body?.kind) {
    case undefined:
      return {}
    case 'json':
      return { type: 'application/json', body: JSON.stringify(body.value) }
    case 'form': {
      const fields = [...body.fields].map(([name, value]): [string, string] => [name, value])
      return { type: 'application/x-www-form-urlencoded', body: new URLSearchParams(fields).toString() }
    }
    case 'multipart': {
      const { FormData } = await import('undici')
      const form = new FormData()
      for (const [name, value] of body.fields) form.append(name, value)
      const { file } = body
      if (file)
        form.append(file.field, new Blob([file.content as Uint8Array<ArrayBuffer>], { type: file.type }), file.name)
      return { body: form }
    }
  }
}

/** Reads the body of an answer. Rejects with TooLongError beyond its bound, bytes, and as the body does. */
export async function readAnswer(
  status: number,
  headers: Readonly<Record<string, string | string[] | undefined>>,
  body: AsyncIterable<Uint8Array>,
  maxBytes = MAX_ANSWER,
): Promise<ServiceAnswer> {
  const text = await readBounded({ body }, maxBytes)
  const retryAfter = headers['retry-after']
  return { status, text, json: parseJson(text), retryAfter: typeof retryAfter === 'string' ? retryAfter : undefined }
}

const UNSENT = ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'UND_ERR_CONNECT_TIMEOUT']

/** True if no byte can have reached the other side. */
function isUnsent(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.length > 0 && error.errors.every(isUnsent)
  return UNSENT.includes(String((error as { readonly code?: unknown } | undefined)?.code))
}

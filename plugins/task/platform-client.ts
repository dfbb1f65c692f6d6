import { S3Error } from 'dealgate'
import { Agent, type Dispatcher, FormData, request } from 'undici'

type Fields = Iterable<readonly [name: string, value: string]>

/** A file of a multipart form. */
export interface FormFile {
  /** Name of the field. */
  readonly field: string
  readonly name: string
  readonly content: Uint8Array
}

export type PlatformBody =
  | { readonly kind: 'json'; readonly fields: Fields }
  | { readonly kind: 'form'; readonly fields: Fields }
  | { readonly kind: 'multipart'; readonly fields: Fields; readonly file: FormFile | undefined }

export interface PlatformCall {
  readonly method: 'GET' | 'POST' | 'PUT'
  /** Segments of the path, not encoded: `['tasks', uuid]`. */
  readonly path: readonly string[]
  readonly query?: Readonly<Record<string, string | number | undefined>>
  /** JWT. */
  readonly token?: string | undefined
  readonly body?: PlatformBody
  readonly timeoutMs?: number
  readonly signal?: AbortSignal | undefined
}

export interface PlatformAnswer {
  readonly status: number
  readonly text: string
  /** Undefined for text that is not JSON. */
  readonly json: unknown
  /** Header Retry-After. */
  readonly retryAfter: string | undefined
}

/** The request was sent, at least in part, and its answer did not come: what the platform did is unknown. */
export class AnswerLost extends Error {
  override readonly name = 'AnswerLost'
  constructor(
    /** True if it did not come in time. */
    readonly late: boolean,
    options: ErrorOptions,
  ) {
    super(late ? 'the task platform did not answer in time' : 'the answer of the task platform was lost', options)
  }
}

/** Most bytes of an answer. */
const MAX_ANSWER = 32 * 1024 * 1024
const CONNECTIONS = 32
const CONNECT_MS = 10_000

/** The HTTP client of the task platform. It repeats nothing and interprets no status. */
export class PlatformClient {
  readonly #base: URL
  readonly #agent: Agent
  readonly #timeoutMs: number

  /** @param url with a path, if the platform has one */
  constructor(url: string, timeoutMs: number) {
    this.#base = new URL(url)
    this.#timeoutMs = timeoutMs
    this.#agent = new Agent({ connections: CONNECTIONS, connect: { timeout: CONNECT_MS }, pipelining: 1 })
  }

  /** Throws S3Error UpstreamUnavailable if nothing was sent, AnswerLost if that is not certain. */
  async send(call: PlatformCall): Promise<PlatformAnswer> {
    const url = this.#urlOf(call)
    const limit = AbortSignal.timeout(call.timeoutMs ?? this.#timeoutMs)
    const signal = call.signal ? AbortSignal.any([call.signal, limit]) : limit
    try {
      const answer = await request(url, {
        method: call.method,
        dispatcher: this.#agent,
        signal,
        // The signal ends a call that is late.
        headersTimeout: 0,
        bodyTimeout: 0,
        ...encoded(call),
      })
      const text = await collect(answer.body)
      const retryAfter = answer.headers['retry-after']
      return {
        status: answer.statusCode,
        text,
        json: parsed(text),
        retryAfter: typeof retryAfter === 'string' ? retryAfter : undefined,
      }
    } catch (cause) {
      if (isUnsent(cause)) {
        throw new S3Error('UpstreamUnavailable', {
          message: 'The task platform cannot be reached. Try again later.',
          headers: { 'retry-after': '2' },
          cause,
        })
      }
      throw new AnswerLost(limit.aborted, { cause })
    }
  }

  close(): Promise<void> {
    return this.#agent.destroy()
  }

  #urlOf({ path, query = {} }: PlatformCall): URL {
    const base = this.#base.pathname.replace(/\/+$/, '')
    const url = new URL(`${base}/${path.map(segmentOf).join('/')}`, this.#base)
    for (const [name, value] of Object.entries(query)) if (value !== undefined) url.searchParams.set(name, `${value}`)
    return url
  }
}

/** URL parsers remove segments of dots. No id has them. */
function segmentOf(text: string): string {
  if (/^\.{0,2}$/.test(text)) throw new S3Error('InvalidArgument', { message: 'An id in the path is empty or dots.' })
  return encodeURIComponent(text)
}

function encoded({ token, body }: PlatformCall): Pick<Dispatcher.RequestOptions, 'body' | 'headers'> {
  const headers: Record<string, string> = { accept: 'application/json', 'user-agent': 'dealgate' }
  if (token !== undefined) headers.authorization = `Bearer ${token}`
  switch (body?.kind) {
    case undefined:
      return { headers }
    case 'json':
      headers['content-type'] = 'application/json'
      return { headers, body: JSON.stringify(Object.fromEntries(body.fields)) }
    case 'form':
      headers['content-type'] = 'application/x-www-form-urlencoded'
      return {
        headers,
        body: new URLSearchParams([...body.fields].map(([name, value]): [string, string] => [name, value])).toString(),
      }
    case 'multipart': {
      const form = new FormData()
      for (const [name, value] of body.fields) form.append(name, value)
      if (body.file)
        form.append(
          body.file.field,
          new Blob([body.file.content as Uint8Array<ArrayBuffer>], { type: 'text/csv' }),
          body.file.name,
        )
      return { headers, body: form }
    }
  }
}

async function collect(body: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of body) {
    size += chunk.length
    if (size > MAX_ANSWER) throw new RangeError(`the answer has more than ${MAX_ANSWER} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const UNSENT = ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'UND_ERR_CONNECT_TIMEOUT']

function isUnsent(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.length > 0 && error.errors.every(isUnsent)
  return UNSENT.includes(String((error as { readonly code?: unknown } | undefined)?.code))
}

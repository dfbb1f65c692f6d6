import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { isDiskFull } from '../../common/disk-reserve.js'
import { isDeeper } from '../../common/json.js'
import { type Found, findRoute as findPattern } from '../http/find-route.js'
import { type BodySink, ReceiveError, receive } from '../http/receive.js'
import { type Answerable, Blocks, reply } from '../http/reply.js'
import type { ServicesLog } from '../log.js'
import type { PaymentContext, Variant } from './context.js'
import { PaymentError } from './errors.js'
import type { KnownWallet } from './wallets.js'

/** One request and its response. */
export interface Exchange extends Answerable {
  readonly context: PaymentContext
  /** Parameters of the query. */
  readonly query: URLSearchParams
  /** Values of the `:name` segments in the path of the route, percent-decoded. */
  readonly path: Readonly<Record<string, string>>
  /** The wallet that signed in; undefined on public routes, and in variant B. */
  readonly caller: KnownWallet | undefined
}

/** Name and value. */
export type Field = readonly [name: string, value: string]

/** Longest text of a field. */
const MAX_TEXT = 1024

/** The fields of a body or a query. */
export class Fields {
  readonly #values: ReadonlyMap<string, string>

  /** The first of two fields with one name counts. */
  constructor(fields: Iterable<Field>) {
    this.#values = new Map([...fields].reverse())
  }

  /** The text without spaces around it; undefined when it is absent or empty. Throws PaymentError `value`. */
  get(name: string): string | undefined {
    const text = this.#values.get(name)?.trim() ?? ''
    // SQLite cuts texts at NUL.
    if (text.length > MAX_TEXT || text.includes('\0') || !text.isWellFormed()) {
      throw new PaymentError('value', `${name} must be a text of at most ${MAX_TEXT} characters`)
    }
    return text === '' ? undefined : text
  }

  /** Throws PaymentError `missing` when the field is absent or empty. */
  required(name: string): string {
    const text = this.get(name)
    if (text === undefined) throw new PaymentError('missing', `${name} is required`)
    return text
  }

  /** A number above 0, such as an id. Throws PaymentError: `missing`, `type` or `value`. */
  id(name: string): number {
    const text = this.required(name)
    if (!/^-?\d{1,15}$/.test(text)) throw new PaymentError('type', `${name} must be a valid number`)
    if (Number(text) < 1) throw new PaymentError('value', `${name} must be greater than 0`)
    return Number(text)
  }
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/**
 * Reads a JSON object of texts and numbers, whatever its Content-Type: a known client sends none. Throws PaymentError:
 * `structure` for any other body, `large` and `late` beyond the limits.
 */
export async function readJson(exchange: Exchange): Promise<Fields> {
  const text = decode(await receiveAll(exchange))
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new PaymentError('structure', 'the body is not JSON')
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value) || isDeeper(value, 1)) {
    throw new PaymentError('structure', 'the body must be a JSON object of texts and numbers')
  }
  return new Fields(Object.entries(value).flatMap(([name, one]) => (one === null ? [] : [[name, String(one)]])))
}

async function receiveAll({ context, request, body }: Exchange): Promise<Buffer> {
  const { maxJsonBytes, jsonMs, bodyIdleMs } = context.limits
  const tooLarge = () => new PaymentError('large', `a body may have at most ${maxJsonBytes} bytes`)
  if (Number(request.headers['content-length'] ?? 0) > maxJsonBytes) throw tooLarge()
  const blocks = new Blocks()
  const deadline = performance.now() + jsonMs
  let refusal: PaymentError | undefined
  body.open()
  const write = (chunk: Buffer): boolean => {
    if (blocks.size + chunk.length > maxJsonBytes) refusal = tooLarge()
    else if (performance.now() > deadline) refusal = new PaymentError('late', `the body took over ${jsonMs} ms`)
    else blocks.add(chunk)
    return refusal === undefined
  }
  await receive(request, undefined, { write, ready: () => Promise.reject(refusal) }, bodyIdleMs)
  return Buffer.concat(blocks.all())
}

function decode(body: Buffer): string {
  try {
    return decoder.decode(body)
  } catch {
    throw new PaymentError('structure', 'the body is not UTF-8')
  }
}

/** How slowly a body may arrive. */
export interface Pace {
  /** Time in which it may be slower than `bytesPerSecond`, ms. */
  readonly graceMs: number
  /** Least average after that time. The time in which the service itself is slow does not count. */
  readonly bytesPerSecond: number
}

/**
 * Passes a body on to a sink. It fails with PaymentError `late` when the body arrives too slowly: a client that sends a
 * byte now and then would hold its place for ever.
 * @param now ms of a monotonic clock
 */
export function paced(sink: BodySink, { graceMs, bytesPerSecond }: Pace, now = () => performance.now()): BodySink {
  const begun = now()
  let waited = 0
  let bytes = 0
  let refusal: PaymentError | undefined
  return {
    write(chunk) {
      bytes += chunk.length
      const seconds = (now() - begun - waited - graceMs) / 1000
      if (bytes >= seconds * bytesPerSecond) return sink.write(chunk)
      refusal = new PaymentError('late', `the body arrives more slowly than ${bytesPerSecond} bytes per second`)
      return false
    },
    async ready() {
      if (refusal !== undefined) throw refusal
      const from = now()
      await sink.ready()
      waited += now() - from
    },
  }
}

/** Most records of a page. The interface names no bound; a page of more costs memory for no client. */
const MOST = 1000
const USUAL = 10

/** A page of a list, by the rules of the interface: an invalid value is as good as none. */
export interface Page<Order extends string> {
  /** 1 to 1000. */
  readonly size: number
  /** Records before the page. */
  readonly offset: number
  readonly orderBy: Order
  readonly ascending: boolean
}

/**
 * Reads `page_size`, `page_number`, `order_by` and `is_ascend`, of which only `y` means yes.
 * @param orders the columns that a list can be sorted by
 */
export function readPage<Order extends string>(
  query: URLSearchParams,
  orders: readonly Order[],
  usual: Order,
): Page<Order> {
  const size = Math.min(positive(query.get('page_size')) ?? USUAL, MOST)
  const number = positive(query.get('page_number')) ?? 1
  const orderBy = orders.find((order) => order === query.get('order_by')) ?? usual
  return { size, offset: (number - 1) * size, orderBy, ascending: query.get('is_ascend') === 'y' }
}

function positive(text: string | null): number | undefined {
  const value = /^\d{1,9}$/.test(text ?? '') ? Number(text) : 0
  return value > 0 ? value : undefined
}

const JSON_TYPE = 'application/json; charset=utf-8'

/** Answers 200 with `{status, code, data}`. @param code undefined: the answer has none */
export function replySuccess(exchange: Answerable, data: unknown, code: 200 | '200' | undefined): void {
  const body = JSON.stringify({ status: 'success', code, data })
  reply(exchange, 200, ['Content-Type', JSON_TYPE, 'Cache-Control', 'no-store'], Buffer.from(body))
}

/** Answers with `{status: "error", code, message}`. Unexpected errors are logged and become 500. */
export function replyFailure(exchange: Answerable, error: unknown, log: ServicesLog): void {
  const failure = asPaymentError(error, log)
  const headers = ['Content-Type', JSON_TYPE, 'Cache-Control', 'no-store', ...failure.headers]
  reply(exchange, failure.status, headers, Buffer.from(failureText(failure)))
}

export function failureText({ code, message }: PaymentError): string {
  return JSON.stringify({ status: 'error', code, message })
}

function asPaymentError(error: unknown, log: ServicesLog): PaymentError {
  if (error instanceof PaymentError) return error
  if (error instanceof ReceiveError) {
    return new PaymentError(error.kind === 'Stalled' ? 'late' : 'structure', error.message)
  }
  if (isDiskFull(error)) return new PaymentError('full', 'the disk of the service is full')
  log.error({ err: error }, 'A request to the storage payment service failed.')
  return new PaymentError('internal', 'the service could not answer')
}

/** One endpoint. */
export interface Route {
  readonly method: 'GET' | 'POST'
  /** Begins with a slash; a segment `:name` matches any text. */
  readonly path: string
  /** `wallet` needs the JWT of a sign-in in variant A; `public` ignores the Authorization header. */
  readonly access: 'public' | 'wallet'
  /** The only variant that has the endpoint; absent: both. */
  readonly only?: Variant
  /** Variants whose answer has no `code`. */
  readonly codeless?: Variant
  /** True where `code` is a text, as in the interface. */
  readonly codeAsText?: true
  /** Returns `data` of the answer. Throws PaymentError. */
  answer(exchange: Exchange): Promise<unknown> | unknown
}

/** A route, and the values of its path. */
export interface Match {
  readonly route: Route
  readonly path: Readonly<Record<string, string>>
}

/** Finds the route of a request. Throws PaymentError: absent for an unknown path, method for another method. */
export function findRoute(routes: readonly Route[], variant: Variant, method: string, path: string): Match {
  const ofVariant = routes.filter(({ only = variant }) => only === variant)
  const found = find(ofVariant, method, path)
  if ('route' in found) return found
  if (found.allowed.length === 0) throw new PaymentError('absent', 'there is no such path')
  const allowed = found.allowed.join(', ')
  throw new PaymentError('method', `this path takes ${allowed}`, ['Allow', allowed])
}

function find(routes: readonly Route[], method: string, path: string): Found<Route> {
  try {
    return findPattern(routes, method, path)
  } catch (error) {
    if (error instanceof URIError) throw new PaymentError('value', 'the path is not percent-encoded UTF-8')
    throw error
  }
}

/**
 * Sends the chunks and ends the response. Destroys it when a chunk fails, so that a part does not look complete, or
 * when the client takes nothing for `idleMs`. Resolves when the chunks are no longer needed.
 */
export async function stream(
  chunks: AsyncIterable<Uint8Array>,
  response: ServerResponse,
  idleMs: number,
): Promise<void> {
  const idle = setTimeout(() => response.destroy(), idleMs)
  try {
    for await (const chunk of chunks) {
      if (response.destroyed) return
      idle.refresh()
      if (!response.write(chunk)) await drained(response)
    }
    response.end()
  } catch {
    response.destroy()
  } finally {
    clearTimeout(idle)
  }
}

async function drained(response: ServerResponse): Promise<void> {
  const over = new AbortController()
  const { signal } = over
  try {
    await Promise.race([once(response, 'drain', { signal }), once(response, 'close', { signal })])
  } finally {
    over.abort()
  }
}

import { isUtf8 } from 'node:buffer'
import { systemFailure } from '../../common/errors/system-errors.js'
import { type HttpExchange, readBody, type ServiceRequest } from '../http/body.js'
import { type HeaderList, HttpError, logSystemFailure, ReceiveError } from '../http/errors.js'
import { reply } from '../http/reply.js'
import { stream } from '../http/send.js'
import { BodyError } from '../store/bodies.js'
import { DatabaseUnavailableError } from '../store/database.js'
import type { Identity } from './access.js'
import type { GatewayContext, ReadContext } from './context.js'
import { GatewayError } from './errors.js'
import { MAX_FENCE, type WriteOrder } from './store/fences.js'

/** Reads a small request body. Throws HttpError 413 when it has more than `maxBytes`. */
export function collect(exchange: ReadExchange, maxBytes: number): Promise<Buffer> {
  return readBody(exchange, { maxBytes, idleMs: exchange.context.limits.uploadIdleMs })
}

/** A request at a gateway that has this context. */
export interface ExchangeIn<C extends ReadContext> extends HttpExchange {
  readonly context: C
  readonly identity: Identity
}

/** A request that may change something. */
export type GatewayExchange = ExchangeIn<GatewayContext>

/** A request that changes nothing, or a part of any request that does not. */
export type ReadExchange = ExchangeIn<ReadContext>

/** Bytes that a header value may contain: HTAB, SP and all visible ones (RFC 9110, 5.5). Each character is one byte. */
const FIELD_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/

/**
 * Encodes a text as a header value: its UTF-8 bytes, one character each. Throws GatewayError InvalidHeader when a
 * header cannot carry it.
 */
export function headerText(name: string, text: string): string {
  const value = Buffer.from(text).toString('latin1')
  if (!FIELD_VALUE.test(value)) throw new GatewayError('InvalidHeader', { value: name })
  return value
}

/** True for paths of the gateway itself, false for objects on its S3 side. */
export function isOwnPath({ names }: Pick<ReadContext, 'names'>, path: string): boolean {
  return path === `/${names.path}` || path.startsWith(`/${names.path}/`)
}

const bodyErrors = {
  lost: 'BodyLost',
  changed: 'BodyChanged',
  unavailable: 'BodiesUnavailable',
  refused: 'BodiesUnavailable',
} as const

const fromSystem = {
  full: 'StorageFull',
  busy: 'TooManyFiles',
  readonly: 'StorageReadOnly',
  broken: 'StorageBroken',
} as const

/** Headers of answers that say when to try again. */
export function retryOf({ cause }: GatewayError): HeaderList {
  const passes =
    cause instanceof DatabaseUnavailableError ||
    (cause instanceof BodyError && cause.kind === 'unavailable') ||
    systemFailure(cause)?.kind === 'busy'
  return passes ? ['Retry-After', 1] : []
}

/** Converts any thrown value to a GatewayError. Unexpected errors are logged and become Internal. */
export function asGatewayError(error: unknown, { context }: Pick<ReadExchange, 'context'>): GatewayError {
  if (error instanceof GatewayError) return error
  if (error instanceof ReceiveError) return new GatewayError(error.kind)
  if (error instanceof HttpError && error.status === 413) return new GatewayError('EntityTooLarge')
  if (error instanceof BodyError) {
    const kind = bodyErrors[error.kind]
    context.damaged(error)
    context.log[kind === 'BodiesUnavailable' ? 'warn' : 'error']({ err: error }, 'The body of an object is not there.')
    return new GatewayError(kind, {}, error)
  }
  if (error instanceof DatabaseUnavailableError) {
    context.log.warn({ err: error }, 'The database of the gateway is not available.')
    return new GatewayError('DatabaseUnavailable', {}, error)
  }
  const failure = systemFailure(error)
  if (failure) {
    logSystemFailure(error, failure, 'the gateway', context.log)
    return new GatewayError(fromSystem[failure.kind], {}, error)
  }
  context.log.error({ err: error }, 'A request failed.')
  return new GatewayError('Internal', {}, error)
}

/** Answers as REST endpoints do: the status and the text of the error. */
export function replyRestError(exchange: ReadExchange, error: unknown, headers: HeaderList = []): void {
  const { errors, names } = exchange.context
  const known = asGatewayError(error, exchange)
  const code = errors.headers(known, names)
  const fence: HeaderList = known.subject.fence === undefined ? [] : [`${names.header}fence`, known.subject.fence]
  const { marker } = known.subject
  const version: HeaderList =
    marker === undefined
      ? []
      : [
          ...[`${names.header}delete-marker`, 'true', `${names.header}version-id`, marker.id],
          ...[`${names.header}last-modified`, marker.since],
        ]
  replyText(exchange, known.status, errors.body(known), [...code, ...fence, ...version, ...retryOf(known), ...headers])
}

/** Answers with the XML error document of S3. */
export function replyXmlError(exchange: ReadExchange, error: unknown, headers: HeaderList = []): void {
  const known = asGatewayError(error, exchange)
  const { errors } = exchange.context
  const document =
    '<?xml version="1.0" encoding="UTF-8"?>\n' +
    `<Error><Code>${known.code}</Code><Message>${escapeXml(errors.text(known))}</Message>` +
    `<Resource>${escapeXml(exchange.target.path)}</Resource></Error>`
  reply(
    exchange,
    known.status,
    ['Content-Type', 'application/xml', ...retryOf(known), ...headers],
    Buffer.from(document),
  )
}

const XML_ESCAPES: Readonly<Record<string, string>> = { '<': '&lt;', '>': '&gt;', '&': '&amp;', '"': '&quot;' }

function escapeXml(text: string): string {
  return text.replace(/[<>&"]/g, (character) => XML_ESCAPES[character] ?? character)
}

export function replyText(exchange: ReadExchange, status: number, text: string, headers: HeaderList = []): void {
  reply(exchange, status, ['Content-Type', 'text/plain; charset=utf-8', ...headers], Buffer.from(text))
}

/**
 * Answers 200 with a body that is generated while it is sent. An error before the first part is thrown. A later one
 * destroys the connection, so that a partial body does not look complete.
 */
export async function sendParts(
  exchange: ReadExchange,
  headers: HeaderList,
  body: AsyncIterable<string>,
): Promise<void> {
  const parts = body[Symbol.asyncIterator]()
  const first = await parts.next()
  exchange.response.writeHead(200, headers)
  const all = async function* (): AsyncGenerator<string> {
    for (let part = first; !part.done; part = await parts.next()) yield part.value
  }
  await stream(all(), exchange.response, exchange.context.limits.downloadIdleMs, (error) =>
    asGatewayError(error, exchange),
  )
}

/** Splits `text` at its first `/`: `b/a/c` is `b` and `a/c`. */
export function splitFirst(text: string): [first: string, rest: string] {
  const at = text.indexOf('/')
  return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)]
}

const ESCAPES = /%([0-9A-Fa-f]{2})/g
const BROKEN_ESCAPE = /%(?![0-9A-Fa-f]{2})/

/** Percent-decodes a text once. Throws GatewayError when the bytes are not UTF-8. */
export function decode(raw: string): Buffer {
  if (BROKEN_ESCAPE.test(raw)) throw new GatewayError('InvalidURI')
  const bytes = Buffer.from(
    raw.replace(ESCAPES, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16))),
    'latin1',
  )
  if (!isUtf8(bytes)) throw new GatewayError('InvalidURI')
  return bytes
}

const WRITE_ID = /^[\x21-\x7e]{1,128}$/

/**
 * The order that an upload declares: the whole order; only the write id, because the rest comes with web.FenceUpload;
 * or nothing.
 */
type DeclaredOrder = WriteOrder | { readonly lateFor: string } | undefined

/**
 * Reads x-cloud-fence (a number, or `late`), x-cloud-write-id and x-cloud-expected-generation (`none`, or a
 * generation). Throws GatewayError InvalidHeader.
 */
export function readWriteOrder(
  { names, features }: Pick<GatewayContext, 'names' | 'features'>,
  { headers }: ServiceRequest,
): DeclaredOrder {
  const fence = headers[`${names.header}fence`]
  if (!features.has('write-fences') || fence === undefined) return undefined
  const writeId = headers[`${names.header}write-id`]
  if (typeof writeId !== 'string' || !WRITE_ID.test(writeId))
    throw new GatewayError('InvalidHeader', { value: `${names.header}write-id` })
  if (fence === 'late') return { lateFor: writeId }
  const number = Number(fence)
  if (!isFence(number)) throw new GatewayError('InvalidHeader', { value: `${names.header}fence` })
  const expected = headers[`${names.header}expected-generation`]
  return {
    fence: number,
    writeId,
    ...(typeof expected === 'string' && { expected: expected === 'none' ? null : expected }),
  }
}

export function isFence(number: number): boolean {
  return Number.isSafeInteger(number) && number > 0 && number <= MAX_FENCE
}

/** True when the client has closed its side of the connection and will not learn the outcome of its request. */
export function hasGone({ socket }: Pick<ServiceRequest, 'socket'>): boolean {
  return socket.destroyed || socket.readableEnded
}

interface OrderParams {
  readonly fence?: number | undefined
  readonly writeId?: string | undefined
  /** '' requires that no object exists. */
  readonly expectedGeneration?: string | undefined
}

/** Undefined when the client sends no fence. Throws GatewayError InvalidArguments. */
export function orderOf({ fence, writeId = '', expectedGeneration }: OrderParams): WriteOrder | undefined {
  if (fence === undefined) return undefined
  if (!isFence(fence) || !WRITE_ID.test(writeId)) throw new GatewayError('InvalidArguments')
  return {
    fence,
    writeId,
    ...(expectedGeneration !== undefined && { expected: expectedGeneration === '' ? null : expectedGeneration }),
  }
}

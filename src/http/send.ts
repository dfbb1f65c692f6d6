import type { IncomingMessage, ServerResponse } from 'node:http'
import type { S3Error } from '../../common/errors/s3-error.js'
import { settleExpectation } from '../../common/expectation.js'
import { needsSandbox, withSandbox } from '../../common/sandbox.js'
import { XML_DECLARATION } from '../../common/xml.js'
import type { LateBody, RelayBody, Reply, ReplyHeaders } from '../api/request.js'
import type { BeginDownload, Downloads } from './downloads.js'
import { type ErrorContext, errorElement, errorReply, toS3Error } from './error-reply.js'
import { headerText } from './header-text.js'
import { relay } from './relay.js'

/** Interval at which white space is sent while a late document is not ready, ms. Clients time out after 60 s. */
const LATE_EVERY_MS = 10_000

/** Bounds for reading the rest of a request body after an early response. Beyond them the connection is cut. */
const DRAIN_BYTES = 32 * 1024 * 1024
const DRAIN_MS = 5_000

/** The outcome of sending a reply. */
export interface SentReply {
  /** Bytes of the body that were passed to the connection. */
  readonly bytes: number
  /** An error after the operation had returned its reply. */
  readonly failure?: S3Error
}

/** Writes the reply to a request: see `send`. */
export type SendReply = (
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  reply: Reply,
  request: { readonly id: string; readonly remote: string },
  errorContext: () => ErrorContext,
) => Promise<SentReply>

/** @param downloads count the bytes of objects that wait for clients */
export function createSender(downloads: Downloads): SendReply {
  return (incoming, outgoing, reply, { id, remote }, errorContext) =>
    send(incoming, outgoing, reply, id, errorContext, (cut) => downloads.begin(remote, cut))
}

/**
 * Writes a reply; no other code does. Resolves when the response was passed to the connection or the connection was
 * cut. Never rejects.
 * @param id of the request, for its headers
 * @param errorContext called only for an error document
 * @param begin counts the bytes of an object that wait for the client
 */
export async function send(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  reply: Reply,
  id: string,
  errorContext: () => ErrorContext,
  begin?: BeginDownload,
): Promise<SentReply> {
  const { body } = reply
  const headers = headOf(id, reply)
  settleExpectation(incoming, outgoing)
  if (!incoming.complete && declaresBody(incoming)) takeIn(incoming)
  try {
    if (isLate(body)) return await sendLate(outgoing, reply.status, headers, body, errorContext)
    if (outgoing.headersSent || outgoing.destroyed) {
      if (isRelay(body)) body.download.discard()
      outgoing.destroy()
    } else if (isRelay(body)) {
      const whole = body.download.whole?.()
      if (whole) return { bytes: sendWhole(outgoing, incoming.method, reply.status, headers, whole) }
      writeHead(outgoing, reply.status, headers)
      return { bytes: await relay(body.download, outgoing, begin) }
    } else {
      return { bytes: sendWhole(outgoing, incoming.method, reply.status, headers, body) }
    }
    return { bytes: 0 }
  } catch (thrown) {
    const failure = toS3Error(thrown)
    if (isRelay(body)) body.download.discard()
    // After the status is sent, only a cut connection can signal an incomplete body.
    if (outgoing.headersSent || outgoing.destroyed) outgoing.destroy()
    else sendError(outgoing, incoming.method, failure, errorContext())
    return { bytes: 0, failure }
  }
}

/** Sends an error without the headers of the reply, which could not be sent. */
function sendError(
  outgoing: ServerResponse,
  method: string | undefined,
  error: S3Error,
  errorContext: ErrorContext,
): void {
  const reply = errorReply(error, errorContext)
  outgoing.statusMessage = ''
  sendWhole(outgoing, method, reply.status, headOf(errorContext.id, reply), reply.body as string)
}

type WireHeaders = Record<string, string | number>

/** The headers of a reply, with those of every answer. */
function headOf(id: string, { headers, ownOrigin }: Pick<Reply, 'headers' | 'ownOrigin'>): WireHeaders {
  const all = add({ 'x-amz-request-id': id, 'x-amz-id-2': id }, headers)
  // Browsers must not interpret stored objects as another type than their Content-Type:
  // https://fetch.spec.whatwg.org/#x-content-type-options-header
  all['x-content-type-options'] = 'nosniff'
  if (ownOrigin || !needsSandbox(all['content-type'])) return all
  all['content-security-policy'] = withSandbox(all['content-security-policy'])
  return all
}

/** Adds the headers that have a value, each as HTTP can carry it. */
function add(all: WireHeaders, headers: ReplyHeaders): WireHeaders {
  for (const name of Object.keys(headers)) {
    const value = headers[name]
    if (value !== undefined) all[name] = typeof value === 'string' ? headerText(value) : value
  }
  return all
}

/**
 * Begins the response. The length is its last header: what follows a length in the list, Node reads anew. It takes
 * Content-Disposition for UTF-8 then, and refuses or changes each name of a file that is not in ASCII.
 * https://github.com/nodejs/node/pull/46528
 */
function writeHead(outgoing: ServerResponse, status: number, headers: WireHeaders): void {
  const { 'content-length': length, ...others } = headers
  outgoing.writeHead(status, length === undefined ? others : { ...others, 'content-length': length })
}

function sendWhole(
  outgoing: ServerResponse,
  method: string | undefined,
  status: number,
  headers: WireHeaders,
  body: string | Buffer | undefined,
): number {
  const bytes = typeof body === 'string' ? Buffer.from(body) : body
  // A 204 or 304 has no body. HEAD has the Content-Length of GET, unless the operation has set it.
  const bodiless = status === 204 || status === 304
  if (!bodiless && headers['content-length'] === undefined) headers['content-length'] = bytes?.length ?? 0
  writeHead(outgoing, status, headers)
  if (bodiless || method === 'HEAD' || !bytes) {
    outgoing.end()
    return 0
  }
  outgoing.end(bytes)
  return bytes.length
}

/**
 * CompleteMultipartUpload and CopyObject may take minutes.
 * https://docs.aws.amazon.com/AmazonS3/latest/API/API_CompleteMultipartUpload.html
 */
async function sendLate(
  outgoing: ServerResponse,
  status: number,
  headers: WireHeaders,
  body: LateBody,
  errorContext: () => ErrorContext,
): Promise<SentReply> {
  let started = false
  const keepAlive = setInterval(() => {
    if (!started) {
      started = true
      writeHead(outgoing, status, headers)
      // Node sends the headers in the encoding of the first text.
      outgoing.write(XML_DECLARATION, 'latin1')
    } else outgoing.write(' ')
    flush(outgoing)
  }, LATE_EVERY_MS)
  keepAlive.unref()
  try {
    const made = await body.late
    const { document: text, headers: more = {} } = typeof made === 'string' ? { document: made } : made
    if (started) outgoing.end(text.startsWith(XML_DECLARATION) ? text.slice(XML_DECLARATION.length) : text)
    else sendWhole(outgoing, undefined, status, add(headers, more), text)
    return { bytes: Buffer.byteLength(text) }
  } catch (thrown) {
    const error = toS3Error(thrown)
    const markup = errorElement(error, errorContext())
    if (started) outgoing.end(markup)
    else sendWhole(outgoing, undefined, error.status, add(headers, error.headers), XML_DECLARATION + markup)
    return { bytes: Buffer.byteLength(markup), failure: error }
  } finally {
    clearInterval(keepAlive)
  }
}

/**
 * Compression middleware buffers writes and adds this method to the response.
 * https://expressjs.com/en/resources/middleware/compression.html#server-sent-events
 */
function flush(outgoing: ServerResponse & { flush?: () => void }): void {
  outgoing.flush?.()
}

function declaresBody(incoming: IncomingMessage): boolean {
  return incoming.headers['content-length'] !== undefined || incoming.headers['transfer-encoding'] !== undefined
}

/**
 * Reads the rest of a request after an early response, within bounds. Closing a connection while bytes arrive resets
 * it, and the client may lose the response: https://www.rfc-editor.org/rfc/rfc9112#section-9.6
 */
function takeIn(incoming: IncomingMessage): void {
  let left = DRAIN_BYTES
  const timer = setTimeout(() => incoming.socket.destroy(), DRAIN_MS)
  timer.unref()
  incoming.on('data', (chunk: Buffer) => {
    left -= chunk.length
    if (left < 0) incoming.socket.destroy()
  })
  incoming.once('close', () => clearTimeout(timer))
  incoming.once('end', () => clearTimeout(timer))
  incoming.on('error', () => {})
  closeAfter(incoming)
  incoming.resume()
}

/** With `connection: close`, Node closes the connection after the response. This delays it to the request's end. */
function closeAfter(incoming: IncomingMessage): void {
  const { socket } = incoming
  const { destroySoon } = socket
  socket.destroySoon = () => {
    socket.end()
    incoming.once('end', () => socket.destroy())
  }
  incoming.once('end', () => {
    socket.destroySoon = destroySoon
  })
}

function isRelay(body: Reply['body']): body is RelayBody {
  return typeof body === 'object' && 'download' in body
}

function isLate(body: Reply['body']): body is LateBody {
  return typeof body === 'object' && 'late' in body
}

import { randomBytes } from 'node:crypto'
import { type ServerResponse, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { answerForm, type ParseError } from '../../common/broken-request.js'
import type { S3Code } from '../../common/errors/codes.js'
import { S3Error } from '../../common/errors/s3-error.js'
import { SANDBOX } from '../../common/sandbox.js'
import { errorReply } from '../../src/http/error-reply.js'

/** Headers that every answer of `http/send.ts` has, too. */
const SAFE = { 'x-content-type-options': 'nosniff', 'content-security-policy': SANDBOX }

/** Maps errors of Node's parser to S3 codes. */
const BROKEN: Readonly<Record<string, S3Code>> = {
  HPE_HEADER_OVERFLOW: 'RequestHeaderSectionTooLarge',
  ERR_HTTP_REQUEST_TIMEOUT: 'RequestTimeout',
}

/** Listener for `clientError` of a server: answers a request that the parser rejects, and closes the connection. */
export function answerBrokenRequest(error: ParseError, socket: Duplex): void {
  // Further bytes on a refused connection fail to parse too, and the connection has its answer.
  if (refused.has(socket)) return
  // The response under way; Node's own handler of this event uses it too. A partial response must not be followed by
  // another one.
  const { _httpMessage: current } = socket as Socket & { _httpMessage?: ServerResponse | null }
  if (!socket.writable || current?.headersSent || error.code === 'ECONNRESET') socket.destroy()
  // The request before the invalid bytes is complete, so its response is sent, as the last one on this connection.
  else if (current?.req.complete) current.shouldKeepAlive = false
  else {
    const code = current && error.code === 'HPE_INVALID_EOF_STATE' ? 'IncompleteBody' : codeOf(error)
    refuse(socket, code, answerForm(error, socket, current?.req))
  }
}

function codeOf(error: ParseError): S3Code {
  return BROKEN[error.code ?? ''] ?? 'BadRequest'
}

const refused = new WeakSet<Duplex>()

/**
 * Time for which a refused connection is still read, ms. Closing it while bytes arrive resets it, and the client may
 * lose the response: https://www.rfc-editor.org/rfc/rfc9112#section-9.6
 */
const LINGER_MS = 1000

/** Writes an error response to the socket and closes the connection. */
export function refuse(socket: Duplex, code: S3Code, form: ReturnType<typeof answerForm> = 'document'): void {
  refused.add(socket)
  const error = new S3Error(code)
  const id = randomBytes(8).toString('hex').toUpperCase()
  const { headers, body } = errorReply(error, { id, resource: '/' })
  const described =
    form === 'empty'
      ? { 'content-length': 0 }
      : { ...headers, ...SAFE, 'content-length': Buffer.byteLength(String(body)) }
  const lines = Object.entries({ ...described, 'x-amz-request-id': id, connection: 'close' }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  )
  const head = `HTTP/1.1 ${error.status} ${STATUS_CODES[error.status]}\r\n${lines.join('')}\r\n`
  socket.end(form === 'document' ? head + body : head)
  socket.on('error', () => socket.destroy())
  const linger = setTimeout(() => socket.destroy(), LINGER_MS)
  socket.once('close', () => clearTimeout(linger))
  socket.once('end', () => socket.destroy())
  socket.resume()
}

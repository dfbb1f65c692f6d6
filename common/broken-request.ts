import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'

/**
 * The error that Node's parser reports for bytes that it rejects:
 * https://nodejs.org/docs/latest-v20.x/api/http.html#event-clienterror
 */
export interface ParseError extends NodeJS.ErrnoException {
  /** The bytes that were parsed last. */
  readonly rawPacket?: Buffer
}

/**
 * True for a body with a transfer coding other than chunked. Node accepts `gzip, chunked` and returns the compressed
 * bytes, which would be taken for the body: https://www.rfc-editor.org/rfc/rfc9112#section-6.1
 */
export function hasUnknownCoding({ 'transfer-encoding': codings }: IncomingHttpHeaders): boolean {
  return codings !== undefined && codings.trim().toLowerCase() !== 'chunked'
}

/**
 * How to answer a request that the parser has rejected: `document` with a body; `head` like a HEAD, with the headers of
 * a body but no body; `empty` with a length of 0, where the request may be a HEAD. Clients take a body after the answer
 * to a HEAD for the start of the next answer. https://www.rfc-editor.org/rfc/rfc9110#section-9.3.2
 * Node does not reveal the method of a request before it has read all headers, and keeps only their last bytes.
 * Listening to the bytes of every connection for the method would cost a third more CPU time per byte of an upload.
 * @param current the request whose headers were read and whose body was not: the error lies in its body
 */
export function answerForm(
  error: ParseError,
  socket: Duplex,
  current: IncomingMessage | undefined,
): 'document' | 'head' | 'empty' {
  if (current) return current.method === 'HEAD' ? 'head' : 'document'
  const { rawPacket } = error
  const { bytesRead } = socket as Duplex & { readonly bytesRead?: number }
  // The bytes begin with a request line for certain only if they are all that the connection has received.
  if (!rawPacket || rawPacket.length !== bytesRead) return 'empty'
  return rawPacket.subarray(0, 5).toString('latin1') === 'HEAD ' ? 'head' : 'document'
}

import type { IncomingMessage, ServerResponse } from 'node:http'

/** Node keeps both flags on the response. It ends the connection after one that answers an open expectation. */
type Expecting = ServerResponse & { _expect_continue?: boolean; readonly _sent100?: boolean }

/** Sends `100 Continue` to a client that waits for it. Must be called when the body is needed, not before. */
export function sendContinue(outgoing: ServerResponse): void {
  // Without a 'checkContinue' listener, Node has sent `100 Continue` itself.
  const { _expect_continue: expects, _sent100: sent } = outgoing as Expecting
  if (expects === true && sent !== true) outgoing.writeContinue()
}

/**
 * Ends the expectation of a client that sends no more bytes, because its body is empty or has arrived: the connection
 * then stays open after the answer. A server may omit `100 Continue` where the framing says that there is no content:
 * https://www.rfc-editor.org/rfc/rfc9110#section-10.1.1
 */
export function settleExpectation(incoming: IncomingMessage, outgoing: ServerResponse): void {
  if (!incoming.complete && hasContent(incoming)) return
  const expecting: Expecting = outgoing
  expecting._expect_continue = false
}

function hasContent({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) !== 0
}

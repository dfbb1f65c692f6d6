import type { IncomingMessage, ServerResponse } from 'node:http'

/** Node keeps both flags on the response. It ends the connection after one that answers an open expectation. */
type Expecting = ServerResponse & { readonly _expect_continue?: boolean; readonly _sent100?: boolean }

/** True while the client waits for `100 Continue`. Without a 'checkContinue' listener, Node has sent it itself. */
export function awaitsContinue(outgoing: ServerResponse): boolean {
  const { _expect_continue: expects, _sent100: sent } = outgoing as Expecting
  return expects === true && sent !== true
}

/** Sends `100 Continue` to a client that waits for it. Must be called when the body is needed, not before. */
export function sendContinue(outgoing: ServerResponse): void {
  if (awaitsContinue(outgoing)) outgoing.writeContinue()
}

/**
 * Answers the expectation of a client that sends no more bytes, because its body is empty or has arrived: Node would
 * end the connection after the answer. A server may leave out `100 Continue` where there is no content
 * (https://www.rfc-editor.org/rfc/rfc9110#section-10.1.1), but botocore takes a final answer in its place for the status
 * of the next request on the connection, too: https://github.com/boto/botocore/blob/develop/botocore/awsrequest.py
 * @returns whether the client waits for nothing more
 */
export function settleExpectation(incoming: IncomingMessage, outgoing: ServerResponse): boolean {
  const isSettled = incoming.complete || !hasContent(incoming)
  if (isSettled) sendContinue(outgoing)
  return isSettled
}

function hasContent({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) !== 0
}

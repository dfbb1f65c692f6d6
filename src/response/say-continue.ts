import type { ServerResponse } from 'node:http'

/** Sends `100 Continue` to a client that waits for it. Must be called when the body is needed, not before. */
export function sayContinue(outgoing: ServerResponse): void {
  // Node keeps both flags on the response. Without a 'checkContinue' listener, Node has sent `100 Continue` itself.
  const state = outgoing as ServerResponse & { _expect_continue?: boolean; _sent100?: boolean }
  if (state._expect_continue === true && state._sent100 !== true) outgoing.writeContinue()
}

import type { ServerResponse } from 'node:http'

/** Tells a client that waits with `Expect: 100-continue` to go on, at the moment somebody wants the body and not before. */
export function sayContinue(outgoing: ServerResponse): void {
  // Node keeps both facts on the response; where nobody listens to 'checkContinue' it has answered by itself already.
  const state = outgoing as ServerResponse & { _expect_continue?: boolean; _sent100?: boolean }
  if (state._expect_continue === true && state._sent100 !== true) outgoing.writeContinue()
}

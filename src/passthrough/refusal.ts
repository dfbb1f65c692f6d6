import type { Reply } from '../response/reply.js'

/** Why a request is not passed on, and the status that says so. */
const refusals = {
  unclear: [400, 'The path can be read in more than one way.'],
  'body unexpected': [400, 'A request of this method has no body.'],
  'broken off': [400, 'The body ended early.'],
  'too slow': [408, 'The body did not arrive in time.'],
  'too large': [413, 'The body is larger than this server passes on (1 MiB).'],
  method: [405, 'Only GET, HEAD and POST are passed on.'],
  'object data': [501, "Objects are not passed on here: use the S3 endpoint, or the gateway's own address."],
  'gateway down': [502, 'The gateway cannot be reached, or broke off.'],
  'gateway slow': [504, 'The gateway did not answer in time.'],
} as const satisfies Record<string, readonly [status: number, message: string]>

export type Refusal = keyof typeof refusals

/** In the form in which gateways of this kind answer errors outside of JSON-RPC. Says nothing of the request: its target may hold tokens. */
export function refusalReply(refusal: Refusal): Reply {
  const [status, message] = refusals[refusal]
  return {
    status,
    headers: {
      'content-type': 'application/json',
      'cache-control': 'no-store',
      ...(status === 405 && { allow: 'GET, HEAD, POST' }),
    },
    body: `${JSON.stringify({ status: 'error', code: status, message })}\n`,
  }
}

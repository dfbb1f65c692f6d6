import type { Reply } from '../../response/reply.js'

/** Reasons why a request is not forwarded, with status and message. */
const refusals = {
  unclear: [400, 'The path is ambiguous.'],
  'body unexpected': [400, 'A request with this method must not have a body.'],
  'broken off': [400, 'The body ended early.'],
  'read already': [400, 'The application has read the body before this server: mount dealgate before body parsers.'],
  'too slow': [408, 'The body did not arrive in time.'],
  'too often': [503, 'There are too many requests from your network address or from all clients: send fewer.'],
  'too many': [503, 'The server is reading too many request bodies at the same time.'],
  'too large': [413, 'The body is larger than 1 MiB, the most that this server forwards.'],
  method: [405, 'Only GET, HEAD and POST are forwarded.'],
  'coded body': [501, 'The only transfer coding that is implemented is chunked.'],
  'object data': [501, "Object data is not forwarded here: use the S3 endpoint, or the gateway's own address."],
  page: [
    501,
    "The gateway's web pages are not served here, because their uploads, downloads and share links would fail: open them at the gateway's own address.",
  ],
  'gateway down': [502, 'The gateway is unreachable, or closed the connection.'],
  'gateway slow': [504, 'The gateway did not answer in time.'],
} as const satisfies Record<string, readonly [status: number, message: string]>

export type Refusal = keyof typeof refusals

/**
 * Formats the error as these gateways do outside JSON-RPC. Contains nothing of the request: its target may hold tokens.
 */
export function refusalReply(refusal: Refusal): Reply {
  const [status, message] = refusals[refusal]
  return {
    status,
    headers: {
      'content-type': 'application/json',
      'cache-control': 'no-store',
      ...(status === 503 && { 'retry-after': '5' }),
      ...(status === 405 && { allow: 'GET, HEAD, POST' }),
    },
    body: `${JSON.stringify({ status: 'error', code: status, message })}\n`,
  }
}

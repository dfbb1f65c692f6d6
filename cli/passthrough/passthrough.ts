import { randomBytes } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { hasUnknownCoding } from '../../common/broken-request.js'
import { clientOf } from '../../common/quota.js'
import type { Reply } from '../../src/api/request.js'
import { clientAt } from '../../src/http/addressing.js'
import { send } from '../../src/http/send.js'
import type { AccessEntry } from '../../src/server/access-log.js'
import type { Passthrough, PassthroughOptions } from '../../src/server/passthrough.js'
import { type Admission, countReceived } from '../../src/server/traffic/traffic.js'
import { forgetFormer, mayChange, type RpcCall, readCall } from './changes.js'
import { createForwarder, type GatewayTarget, gatewayTargetOf, readBody } from './forward.js'

/** JSON-RPC calls are small; objects are not forwarded. */
const MAX_BODY_BYTES = 1024 * 1024

/** Longest name of a bucket that is logged, characters. */
const MAX_NAME = 255

/** Endpoints whose bodies are objects. Public gateways send several objects with `zip` (MinIO cmd/web-router.go). */
const OBJECT_DATA = new Set(['upload', 'download', 'zip'])

/** A request under way. */
interface ForwardedRequest {
  readonly id: string
  readonly started: number
  readonly incoming: IncomingMessage
  readonly remote: string
  call?: RpcCall
  /** Bytes of the response body. */
  bytes: number
}

/** @throws TypeError for an invalid URL */
export function createPassthrough(options: PassthroughOptions): Passthrough {
  const { word, log, limits } = options
  const exchanges = new WeakMap<ServerResponse, ForwardedRequest>()
  const forwarder = createForwarder({
    url: new URL(options.url),
    tls: options.tls,
    timeoutMs: options.timeoutMs,
    replaces(outgoing, response) {
      if (!isPage(response)) return false
      noteChange(outgoing)
      void refuse(outgoing, 'page')
      return true
    },
    onAnswer(outgoing, response) {
      noteChange(outgoing)
      response.on('data', (chunk: Buffer) => {
        const exchange = exchanges.get(outgoing)
        if (exchange) exchange.bytes += chunk.length
      })
    },
    onFailure(outgoing, err, slow) {
      noteChange(outgoing)
      if (outgoing.destroyed) return
      log.warn({ err, requestId: exchanges.get(outgoing)?.id }, 'failed to forward a request to the gateway')
      if (outgoing.headersSent) outgoing.destroy()
      else void refuse(outgoing, slow ? 'gateway slow' : 'gateway down')
    },
  })

  function noteChange(outgoing: ServerResponse): void {
    const call = exchanges.get(outgoing)?.call
    if (call && mayChange(call)) options.onChange()
  }

  /** Before the call is made. Not synced: its client may have no log-in, and must not make the disk work. */
  async function record({ id, remote }: ForwardedRequest, call: RpcCall): Promise<void> {
    const { audit } = options
    if (!audit || !mayChange(call)) return
    const entry = {
      time: new Date().toISOString(),
      action: nameOf(call),
      plugin: 'gateway',
      requestId: id,
      remote,
      bucket: call.bucket?.slice(0, MAX_NAME),
      outcome: 'begun',
    }
    await audit
      .write(entry, { durable: false })
      .catch((err) => log.error({ err, requestId: id, audit: entry }, 'the audit log cannot be written'))
  }

  async function refuse(outgoing: ServerResponse, refusal: Refusal): Promise<void> {
    const exchange = exchanges.get(outgoing)
    if (!exchange) return
    const { bytes } = await send(exchange.incoming, outgoing, refusalReply(refusal), exchange.id, () => ({
      id: exchange.id,
      resource: '',
    }))
    exchange.bytes = bytes
  }

  function admit(remote: string, received: () => number): Admission | 'too often' | undefined {
    try {
      return options.traffic.isBound ? options.traffic.admit(remote, received) : undefined
    } catch {
      return 'too often'
    }
  }

  async function pass(
    target: GatewayTarget,
    incoming: IncomingMessage,
    outgoing: ServerResponse,
  ): Promise<Refusal | undefined> {
    const refusal = refusalOf(target, incoming)
    if (refusal) return refusal
    const exchange = exchanges.get(outgoing)
    const client = exchange?.remote ?? ''
    const body = await readBody(incoming, MAX_BODY_BYTES, limits, () => {
      return incoming.method === 'POST' ? options.bodies.takeIn(clientOf('', client), outgoing) : undefined
    })
    if (typeof body === 'string') return body
    if (exchange && incoming.method === 'POST') {
      exchange.call = readCall(body)
      await record(exchange, exchange.call)
      await forgetFormer(exchange.call, options.gateway, options.forget)
    }
    forwarder.forward({ incoming, target: target.target, body, client }, outgoing)
    return undefined
  }

  return {
    serve(incoming, outgoing) {
      const target = gatewayTargetOf(incoming, word, options.addressing)
      if (!target) return false
      const exchange: ForwardedRequest = {
        id: randomBytes(8).toString('hex').toUpperCase(),
        started: performance.now(),
        incoming,
        remote: clientAt(incoming, options.addressing).address,
        bytes: 0,
      }
      exchanges.set(outgoing, exchange)
      // A client may disconnect at any time; without a listener its error would end the process.
      incoming.on('error', () => {})
      outgoing.on('error', () => {})
      outgoing.once('close', () => options.onDone(entryOf(exchange, outgoing), incoming, outgoing))
      const received = countReceived(incoming)
      const admission = admit(exchange.remote, received)
      if (admission === 'too often') {
        void refuse(outgoing, admission)
        return true
      }
      outgoing.once('close', () => admission?.leave(received() + exchange.bytes))
      const passed = target === 'unclear' ? Promise.resolve(target) : pass(target, incoming, outgoing)
      passed
        .catch((err): Refusal => {
          log.warn({ err, requestId: exchange.id }, 'failed to forward a request to the gateway')
          return 'gateway down'
        })
        .then((refusal) => refusal && refuse(outgoing, refusal))
      return true
    },
    close: () => forwarder.close(),
  }
}

/** Returns the refusal of a request that can be refused without its body. */
function refusalOf({ segments }: GatewayTarget, incoming: IncomingMessage): Refusal | undefined {
  if (OBJECT_DATA.has(segments[0]?.toLowerCase() ?? '')) return 'object data'
  if (!['GET', 'HEAD', 'POST'].includes(incoming.method ?? '')) return 'method'
  if (hasUnknownCoding(incoming.headers)) return 'coded body'
  return incoming.method !== 'POST' && hasBody(incoming) ? 'body unexpected' : undefined
}

/** True for a page for people. Only a page that is shown offers what would fail here. */
function isPage({ statusCode = 0, headers }: IncomingMessage): boolean {
  return statusCode >= 200 && statusCode < 300 && /^text\/html\b/i.test(headers['content-type'] ?? '')
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}

/** The name of a call comes from the client. */
function nameOf(call: RpcCall | undefined): string {
  return call && /^web\.[A-Za-z]{1,40}$/.test(call.method) ? call.method : 'Passthrough'
}

function entryOf(
  { id, started, incoming, remote, call, bytes }: ForwardedRequest,
  outgoing: ServerResponse,
): AccessEntry {
  return {
    requestId: id,
    operation: nameOf(call),
    method: incoming.method ?? '',
    status: outgoing.headersSent ? outgoing.statusCode : 0,
    bytesIn: Number(incoming.headers['content-length'] ?? 0),
    bytesOut: bytes,
    ms: Math.round((performance.now() - started) * 10) / 10,
    remote,
    cut: !outgoing.writableFinished,
  }
}

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

type Refusal = keyof typeof refusals

/**
 * Formats the error as these gateways do outside JSON-RPC. Contains nothing of the request: its target may hold tokens.
 */
function refusalReply(refusal: Refusal): Reply {
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

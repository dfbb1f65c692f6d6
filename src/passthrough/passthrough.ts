import { randomBytes } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AccessEntry } from '../access-log.js'
import type { Gateway } from '../gateway/gateway.js'
import type { Limits } from '../limits.js'
import type { Logger } from '../log.js'
import type { Addressing } from '../request/addressing.js'
import { sayContinue } from '../response/say-continue.js'
import { send } from '../response/send.js'
import { forgetFormer, mayChange, type RpcCall, readCall } from './changes.js'
import { type Claim, claimOf } from './claim.js'
import { createForwarder } from './forward.js'
import { readBody } from './read-body.js'
import { type Refusal, refusalReply } from './refusal.js'

/** JSON-RPC calls are small; objects are not passed on. */
const MAX_BODY_BYTES = 1024 * 1024

/** Endpoints whose bodies are objects; `zip` is the one by which public gateways send several at once (MinIO cmd/web-router.go). */
const OBJECT_DATA = new Set(['upload', 'download', 'zip'])

export interface PassthroughOptions {
  /** The gateway's address. */
  readonly url: string
  /** First segment of its own paths. */
  readonly word: string
  readonly timeoutMs: number
  readonly addressing: Addressing
  readonly limits: Pick<Limits, 'bodyIdleMs'>
  /** The gateway as the proxy's own account sees it. */
  readonly gateway: Pick<Gateway, 'bucketExists'>
  /** Removes what is kept for a bucket that there is no more. */
  readonly forget: (bucket: string) => Promise<void>
  /** Somebody may have changed something. Called before he is told that it is done. */
  readonly onChange: () => void
  readonly onDone: (entry: AccessEntry) => void
  readonly log: Logger
}

/** The gateway's own paths on this server's port, for clients of its JSON-RPC and its web pages. The gateway itself decides who may do what. */
export interface Passthrough {
  /** Serves the request if it is the gateway's; otherwise leaves it alone and returns false. */
  serve(incoming: IncomingMessage, outgoing: ServerResponse): boolean
  close(): void
}

/** What is known of an exchange that is under way. */
interface Exchange {
  readonly id: string
  readonly started: number
  readonly incoming: IncomingMessage
  readonly remote: string
  call?: RpcCall
  /** Of the answer's body. */
  bytes: number
}

/** Throws TypeError for an address that cannot be. */
export function createPassthrough(options: PassthroughOptions): Passthrough {
  const { word, log, limits } = options
  const exchanges = new WeakMap<ServerResponse, Exchange>()
  const forwarder = createForwarder({
    url: new URL(options.url),
    timeoutMs: options.timeoutMs,
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
      log.warn({ err }, 'passing a request on to the gateway failed')
      if (outgoing.headersSent) outgoing.destroy()
      else void refuse(outgoing, slow ? 'gateway slow' : 'gateway down')
    },
  })

  function noteChange(outgoing: ServerResponse): void {
    const call = exchanges.get(outgoing)?.call
    if (call && mayChange(call)) options.onChange()
  }

  async function refuse(outgoing: ServerResponse, refusal: Refusal): Promise<void> {
    const exchange = exchanges.get(outgoing)
    if (!exchange) return
    const { bytes } = await send(exchange.incoming, outgoing, refusalReply(refusal), { id: exchange.id, resource: '' })
    exchange.bytes = bytes
  }

  async function pass(claim: Claim, incoming: IncomingMessage, outgoing: ServerResponse): Promise<Refusal | undefined> {
    const refusal = refusalOf(claim, incoming)
    if (refusal) return refusal
    if (incoming.method === 'POST') sayContinue(outgoing)
    const body = await readBody(incoming, MAX_BODY_BYTES, limits.bodyIdleMs)
    if (typeof body === 'string') return body
    const exchange = exchanges.get(outgoing)
    if (exchange && incoming.method === 'POST') {
      exchange.call = readCall(body)
      await forgetFormer(exchange.call, options.gateway, options.forget)
    }
    forwarder.forward({ incoming, target: claim.target, body }, outgoing)
    return undefined
  }

  return {
    serve(incoming, outgoing) {
      const claim = claimOf(incoming, word, options.addressing)
      if (!claim) return false
      const exchange: Exchange = {
        id: randomBytes(8).toString('hex').toUpperCase(),
        started: performance.now(),
        incoming,
        remote: incoming.socket.remoteAddress ?? '',
        bytes: 0,
      }
      exchanges.set(outgoing, exchange)
      // A client may leave at any moment.
      incoming.on('error', () => {})
      outgoing.on('error', () => {})
      outgoing.once('close', () => options.onDone(entryOf(exchange, outgoing)))
      const passed = claim === 'unclear' ? Promise.resolve(claim) : pass(claim, incoming, outgoing)
      passed
        .catch((err): Refusal => {
          log.warn({ err }, 'passing a request on to the gateway failed')
          return 'gateway down'
        })
        .then((refusal) => refusal && refuse(outgoing, refusal))
      return true
    },
    close: () => forwarder.close(),
  }
}

/** What can be said without the body. */
function refusalOf({ segments }: Claim, incoming: IncomingMessage): Refusal | undefined {
  if (OBJECT_DATA.has(segments[0]?.toLowerCase() ?? '')) return 'object data'
  if (!['GET', 'HEAD', 'POST'].includes(incoming.method ?? '')) return 'method'
  return incoming.method !== 'POST' && hasBody(incoming) ? 'body unexpected' : undefined
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}

function entryOf({ id, started, incoming, remote, call, bytes }: Exchange, outgoing: ServerResponse): AccessEntry {
  return {
    requestId: id,
    operation: /^web\.[A-Za-z]{1,40}$/.test(call?.method ?? '') ? (call?.method ?? '') : 'Passthrough',
    method: incoming.method ?? '',
    status: outgoing.headersSent ? outgoing.statusCode : 0,
    bytesIn: Number(incoming.headers['content-length'] ?? 0),
    bytesOut: bytes,
    ms: Math.round((performance.now() - started) * 10) / 10,
    remote,
    cut: !outgoing.writableFinished,
  }
}

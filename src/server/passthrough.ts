import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Logger } from '../../common/log.js'
import type { Gateway } from '../api/gateway.js'
import type { Limits } from '../api/limits.js'
import type { GatewayTls } from '../gateway/gateway-call.js'
import type { Addressing } from '../http/addressing.js'
import type { Bodies } from '../http/body/body.js'
import type { OnDone } from './access-log.js'
import type { AuditLog } from './audit.js'
import type { Traffic } from './traffic/traffic.js'

/** What serves the gateway's own paths beside S3, and what it gets. `cli/passthrough` has it. */
export interface PassthroughOptions {
  /** Address of the gateway. */
  readonly url: string
  /** For an https: address. */
  readonly tls?: GatewayTls | undefined
  /** First segment of the gateway's own paths. */
  readonly word: string
  readonly timeoutMs: number
  readonly addressing: Addressing
  readonly limits: Pick<Limits, 'bodyIdleMs' | 'minBodyRate'>
  /** Limits the requests and bytes of clients. */
  readonly traffic: Traffic
  /** Limits the bodies that are read at the same time. */
  readonly bodies: Bodies
  /** The gateway, accessed with the proxy's own account. */
  readonly gateway: Pick<Gateway, 'bucketExists'>
  /** Removes the data of a deleted bucket, which did not exist at that time, ms since 1970. */
  readonly forget: (bucket: string, before: number) => Promise<void>
  /** Called after a request that may have changed something, before its client receives the response. */
  readonly onChange: () => void
  readonly onDone: OnDone
  /** Gets calls that may change something. Only the gateway knows whose they are, and whether it does them. */
  readonly audit?: AuditLog | undefined
  readonly log: Logger
}

/**
 * Serves the gateway's own paths on this server's port, for clients of its JSON-RPC. The gateway itself checks access.
 * Its web pages are refused: they upload and download by paths that are not forwarded, and sign share links for the
 * host that shows them, where the gateway's key pair is unknown.
 */
export interface Passthrough {
  /** Serves a request to a path of the gateway. Returns false, without touching the request, for other paths. */
  serve(incoming: IncomingMessage, outgoing: ServerResponse): boolean
  close(): void
}

/** @throws TypeError for an invalid URL */
export type CreatePassthrough = (options: PassthroughOptions) => Passthrough

import type { IncomingMessage } from 'node:http'
import type { Caller } from '../../auth/caller.js'
import type { RequestHead } from '../../request/s3-request.js'
import { countReceived } from './received.js'
import type { Traffic } from './traffic.js'

/** A request that the bounds of the server's traffic have let in. */
export interface LetIn {
  /** Counts the request for its caller. Throws S3Error SlowDown. */
  identify(caller: Caller | undefined): void
  /** @param sent bytes of the response body */
  leave(sent: number): void
}

/** Calls by which a supervisor on this machine finds out whether the server is alive. */
const PROBES = new Set(['/-/live', '/-/ready', '/-/health'])
const LOOPBACK = /^(?:::ffff:)?127\.|^::1$/

/**
 * Counts a request. Undefined for one that needs no permission: there are no bounds, or it is a probe of this machine.
 * Throws S3Error SlowDown.
 */
export function letIn(
  traffic: Traffic,
  { path, remoteAddress }: RequestHead,
  incoming: IncomingMessage,
): LetIn | undefined {
  if (!traffic.isBound || (PROBES.has(path) && LOOPBACK.test(remoteAddress))) return undefined
  const { headers } = incoming
  const received = countReceived(incoming)
  const visit = traffic.arrive(remoteAddress, received)
  return {
    identify(caller) {
      if (caller) visit.identify(caller.identity.accessKeyId, Number(headers['content-length'] ?? 0) || 0)
    },
    leave: (sent) => visit.leave(received() + sent),
  }
}

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { BodyGate } from '../../http/body-gate.js'
import type { Target } from '../../http/target.js'
import type { Identity } from '../access/access.js'
import type { GatewayContext } from '../context.js'

/** One request and its response. */
export interface Exchange {
  readonly context: GatewayContext
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly target: Target
  /** Caller that the Authorization header identifies. */
  readonly identity: Identity
  readonly body: BodyGate
}

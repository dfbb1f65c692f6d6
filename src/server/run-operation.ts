import { networkOf } from '../../common/cidr.js'
import { ClientRate } from '../../common/client-rate.js'
import { slowDown } from '../../common/errors/s3-error.js'
import { isPassedOn } from '../access/authorize.js'
import type { Context } from '../api/context.js'
import type { AnyOperation } from '../api/operation.js'
import type { Reply, S3Request } from '../api/request.js'

/** Unsigned requests whose bearer token is for the service behind a call: each is a request to that service. */
const BEARERS = { burst: 120, perSecond: 4, concurrency: { total: 64, perClient: 16 } }

/** Runs an operation for a request that may have it. Rejects with the errors of the operation. */
export type RunOperation = (operation: AnyOperation, request: S3Request, context: Context) => Promise<Reply>

/** The table passes an operation only requests of its own resource; the union type cannot express that. */
export const runOperation: RunOperation = (operation, request, context) =>
  (operation.run as (request: S3Request, context: Context) => Promise<Reply>)(request, context)

/** Limits what unsigned requests with a token ask of the service behind a call; the runner throws SlowDown, too. */
export function createRunner(): RunOperation {
  const bearers = new ClientRate(BEARERS, () => slowDown('Too many requests with tokens: send fewer, or sign them.'))
  return (operation, request, context) =>
    isPassedOn(operation, context.caller, request)
      ? bearers.run(networkOf(request.remoteAddress), () => runOperation(operation, request, context))
      : runOperation(operation, request, context)
}

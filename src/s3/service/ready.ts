import { withinDeadline } from '../../common/deadline.js'
import { S3Error } from '../../common/errors/s3-error.js'
import { ToldAlready } from '../../common/errors/told-already.js'
import type { Context } from '../../server/context.js'

/** Timeout of the checks of the gateway and the store of records, ms. Load balancers wait a few seconds. */
const PATIENCE_MS = 3_000

/**
 * Resolves if requests can be served: the gateway accepts the log-in, and the store of records answers a look-up.
 * Throws S3Error ServiceUnavailable with the reason, within a bounded time.
 */
export async function requireReady({ gateway, state }: Pick<Context, 'gateway' | 'state'>): Promise<void> {
  await Promise.all([
    bounded(() => gateway.ready(), 'The object gateway did not answer in time.'),
    bounded(() => state.records('probe').get('probe'), "The store of the server's own records did not answer in time."),
  ])
}

async function bounded(work: () => Promise<unknown>, message: string): Promise<void> {
  const late = () => new S3Error('ServiceUnavailable', { message, cause: new ToldAlready(message) })
  try {
    await withinDeadline(work(), PATIENCE_MS, late)
  } catch (error) {
    // The gateway refuses the log-in of this server, not the client of this call.
    if (error instanceof S3Error && error.status < 500) throw new S3Error('ServiceUnavailable', error)
    throw error
  }
}

import { Overdue, withinDeadline } from '../../common/time.js'
import type { ServicesLog } from '../log.js'
import { DatabaseUnavailableError } from '../store/database.js'
import type { HttpExchange } from './body.js'
import type { HeaderList } from './errors.js'
import { reply } from './reply.js'

/** Longest wait for the database, ms. Load balancers wait a few seconds. */
const MAX_WAIT_MS = 3_000

/** What load balancers ask: whether the process answers, and whether it can serve requests. */
export function isHealthCall({ request, target }: HttpExchange): boolean {
  return ['/-/live', '/-/ready'].includes(target.path) && ['GET', 'HEAD'].includes(request.method ?? '')
}

/** @param ready as of `HandlerOptions` */
export async function answerHealth(
  exchange: HttpExchange,
  ready: () => Promise<unknown>,
  log: ServicesLog,
): Promise<void> {
  const headers: HeaderList = ['Content-Type', 'application/json', 'Cache-Control', 'no-store']
  const word = exchange.target.path.slice('/-/'.length)
  const failure =
    word === 'live'
      ? undefined
      : await withinDeadline(ready(), MAX_WAIT_MS).then(
          () => {},
          (error) => error,
        )
  if (failure === undefined) return reply(exchange, 200, headers, Buffer.from(JSON.stringify({ status: word })))
  if (!(failure instanceof DatabaseUnavailableError || failure instanceof Overdue))
    log.error({ err: failure }, 'The readiness of a service could not be determined.')
  const body = { status: 'unavailable', message: 'The database of the service cannot be used.' }
  reply(exchange, 503, [...headers, 'Retry-After', 1], Buffer.from(JSON.stringify(body)))
}

import { isDiskFull } from '../../common/disk-reserve.js'
import type { ServicesLog } from '../log.js'
import { DatabaseUnavailableError } from '../store/database.js'

const RETRY_SECONDS = 5

export type HeaderList = (string | number)[]

/** A refusal: the status and the message of the answer. */
export class HttpError extends Error {
  override readonly name: string = 'HttpError'
  readonly status: number
  /** Further headers of the answer. */
  readonly headers: HeaderList

  constructor(status: number, message: string, headers: HeaderList = []) {
    super(message)
    this.status = status
    this.headers = headers
  }
}

/** A body did not arrive: its client ended early, or sent nothing for too long. */
export class ReceiveError extends HttpError {
  override readonly name = 'ReceiveError'
  readonly kind: 'Stalled' | 'IncompleteBody'

  constructor(kind: ReceiveError['kind']) {
    if (kind === 'Stalled') super(408, 'The body stopped arriving.')
    else super(400, 'The body ended before its end.')
    this.kind = kind
  }
}

/**
 * Any thrown value as a refusal. An unexpected error is logged and becomes 500.
 * @param service for messages, such as `the task platform`
 */
export function asHttpError(error: unknown, service: string, log: ServicesLog): HttpError {
  if (error instanceof HttpError) return error
  if (isDiskFull(error)) return new HttpError(507, `The disk of ${service} is full.`)
  if (error instanceof DatabaseUnavailableError) {
    log.warn({ err: error }, `The database of ${service} is not available.`)
    return new HttpError(503, `The database of ${service} is not available.`, ['Retry-After', RETRY_SECONDS])
  }
  log.error({ err: error }, `A request to ${service} failed.`)
  return new HttpError(500, `An internal error of ${service} prevented an answer.`)
}

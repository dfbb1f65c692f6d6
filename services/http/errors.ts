import { type SystemFailure, systemFailure } from '../../common/errors/system-errors.js'
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
  if (error instanceof DatabaseUnavailableError) {
    log.warn({ err: error }, `The database of ${service} is not available.`)
    return new HttpError(503, `The database of ${service} is not available.`, ['Retry-After', RETRY_SECONDS])
  }
  const failure = systemFailure(error)
  if (failure) return fromSystem(error, failure, service, log)
  log.error({ err: error }, `A request to ${service} failed.`)
  return new HttpError(500, `An internal error of ${service} prevented an answer.`)
}

const STATUSES = { full: 507, busy: 503, readonly: 503, broken: 500 } as const

function fromSystem(error: unknown, failure: SystemFailure, service: string, log: ServicesLog): HttpError {
  logSystemFailure(error, failure, service, log)
  const headers = failure.kind === 'broken' ? [] : ['Retry-After', RETRY_SECONDS]
  return new HttpError(STATUSES[failure.kind], upperFirst(`${service} ${failure.says}`), headers)
}

/** One line for the operator: what failed, and what to do. */
export function logSystemFailure(error: unknown, { kind, remedy }: SystemFailure, service: string, log: ServicesLog) {
  log[kind === 'broken' || kind === 'readonly' ? 'error' : 'warn'](
    { err: error },
    `A request to ${service} failed: ${remedy}.`,
  )
}

function upperFirst(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`
}

import { type SystemFailure, systemFailure } from '../../common/errors/system-errors.js'
import { HttpError, logSystemFailure } from '../http/errors.js'
import type { ServicesLog } from '../log.js'
import { DatabaseUnavailableError } from '../store/database.js'

const RETRY_SECONDS = 5

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

function upperFirst(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`
}

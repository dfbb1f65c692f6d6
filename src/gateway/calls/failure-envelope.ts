import { isRecord } from './rpc-reply.js'

/**
 * The message of a failure in the gateway's own form, `{"data": ..., "status": "fail", "message": "..."}` with all
 * three members, as its deal endpoints send it (filswan/fs3 cmd/web-handlers.go). Undefined for any other answer: an
 * intermediate proxy may answer by itself after it has forwarded a request, so only this form proves that the gateway
 * refused.
 */
export function failureMessage(json: unknown): string | undefined {
  if (!isRecord(json) || !Object.hasOwn(json, 'data')) return undefined
  const { status, message } = json
  return typeof status === 'string' && status.toLowerCase() === 'fail' && typeof message === 'string'
    ? message
    : undefined
}

/**
 * Statuses that proxies answer after a timeout and that the gateway never uses for a refusal: request timeout, too
 * early, too many requests, client closed request.
 */
const NEVER_REFUSALS: readonly number[] = [408, 425, 429, 499]

/**
 * The gateway's own reason for refusing a POST, which proves that nothing was done. Undefined for every other answer,
 * which leaves the outcome unknown: a failure with a status of 500 or more means that the gateway broke down, possibly
 * after it did the work.
 */
export function refusalOf({ status, json }: { readonly status: number; readonly json: unknown }): string | undefined {
  const refuses = status === 200 || (status >= 400 && status < 500 && !NEVER_REFUSALS.includes(status))
  return refuses ? failureMessage(json) : undefined
}

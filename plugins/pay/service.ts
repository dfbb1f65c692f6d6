import { AnswerReader, type Envelope, quoted, TokenRefused } from 'dealgate/paid'
import { S3Error } from 'dealgate/plugin'
import { z } from 'zod'

/** Errors for what only the call can name. */
export interface Refusals {
  /** The service does not know what the request names. */
  missing(): Error
  /** The service has something else in its place. */
  conflict(message: string): S3Error
}

/** Codes and texts of bad parameters, which come with status 500, too. */
const BAD_PARAMETER =
  /^(?:param cannot be null|(?:wrong )?param data type|param value is invalid|invalid param value|params? parse)/i
const isBadParameter = ({ code, message }: Envelope) => /^1000[1-4]$/.test(code) || BAD_PARAMETER.test(message)
const NOT_FOUND = /not exists?\b|does not exist|not found|no such/i

/**
 * The answers of the service. A refusal is TokenRefused, InvalidArgument, AccessDenied, PaymentRefused, EntityTooLarge,
 * or one of `Refusals`.
 */
export const service = new AnswerReader<Refusals>({
  service: 'payment service',
  isRefusal: isBadParameter,
  refusal(status, said, refusals) {
    const message = quoted(said.message)
    if (status === 401) return new TokenRefused(message)
    if (status === 403) return new S3Error('AccessDenied', { message: `The payment service says: ${message}` })
    if (status === 404 || NOT_FOUND.test(said.message)) return refusals.missing?.() ?? refused(message)
    if (status === 409 || /mint info exists/i.test(said.message))
      return refusals.conflict?.(message) ?? refused(message)
    if (status === 413) return new S3Error('EntityTooLarge', { message: `The payment service says: ${message}` })
    if (status < 300 || status === 400 || status === 415 || status === 422 || isBadParameter(said))
      return new S3Error('InvalidArgument', { message: `The payment service refuses this: ${message}` })
    return refused(message)
  },
})

function refused(message: string): S3Error {
  return new S3Error('PaymentRefused', {
    status: 409,
    message: `The payment service refuses this: ${message || 'it gives no reason'}`,
  })
}

export const address = z
  .string()
  .regex(/^0x[0-9a-fA-F]{40}$/, 'must be 0x and 40 hexadecimal digits')
  .describe('0x and 40 hexadecimal digits.')

/** A path of the interface: `apiPath('billing')`. */
export function apiPath(...segments: readonly string[]): readonly string[] {
  return ['api', 'v1', ...segments]
}

import { redact, S3Error } from 'dealgate'
import { z } from 'zod'
import { AnswerLost, type PaymentAnswer } from '../payment-client.js'
import { text } from './members.js'

/** The service refuses the token of a request, or wants one. */
export class TokenRefused extends Error {
  override readonly name = 'TokenRefused'
}

/** Errors for what only the call can name. */
export interface Refusals {
  /** The service does not know what the request names. */
  missing?(): Error
  /** The service has something else in its place. */
  conflict?(message: string): S3Error
}

/** Envelope of every answer. `code` is a number, a text or absent, and success without `status` is known, too. */
const envelope = z.looseObject({ status: text, code: text, message: text, data: z.unknown().optional() })
export type Envelope = z.output<typeof envelope>

/** Codes and texts of bad parameters, which come with status 500, too. */
const BAD_PARAMETER =
  /^(?:param cannot be null|(?:wrong )?param data type|param value is invalid|invalid param value|params? parse)/i
const isBadParameter = ({ code, message }: Envelope) => /^1000[1-4]$/.test(code) || BAD_PARAMETER.test(message)
const NOT_FOUND = /not exists?\b|does not exist|not found|no such/i

/** Longest part of a text of the service that a message quotes, characters. */
const QUOTED = 500

/**
 * The envelope of an answer that reports success.
 * @throws TokenRefused, and S3Error for a refusal: InvalidArgument, AccessDenied, PaymentRefused, EntityTooLarge,
 * SlowDown, UpstreamUnavailable, UpstreamBadResponse, or one of `refusals`
 */
export function successOf(answer: PaymentAnswer, refusals: Refusals = {}): Envelope {
  const { status } = answer
  const said = envelope.safeParse(answer.json).data
  if (status >= 200 && status < 300) {
    if (!said) throw badResponse('The payment service gave an answer that is not JSON.')
    if (said.status === '' || said.status.toLowerCase() === 'success') return said
    throw refusalOf(400, said, refusals)
  }
  if (!said) {
    if (status >= 500 || status === 429) throw busy(answer, '')
    throw badResponse(`The payment service answered with status ${status}, which this server does not know.`)
  }
  if (status === 429) throw busy(answer, said.message)
  if (status >= 500 && !isBadParameter(said)) throw busy(answer, said.message)
  throw refusalOf(status, said, refusals)
}

function refusalOf(status: number, said: Envelope, refusals: Refusals): Error {
  const message = quote(said.message)
  if (status === 401) return new TokenRefused(message)
  if (status === 403) return new S3Error('AccessDenied', { message: `The payment service says: ${message}` })
  if (status === 404 || NOT_FOUND.test(said.message)) return refusals.missing?.() ?? refused(message)
  if (status === 409 || /mint info exists/i.test(said.message)) return refusals.conflict?.(message) ?? refused(message)
  if (status === 413) return new S3Error('EntityTooLarge', { message: `The payment service says: ${message}` })
  if (status === 400 || status === 415 || status === 422 || isBadParameter(said))
    return new S3Error('InvalidArgument', { message: `The payment service refuses this: ${message}` })
  return refused(message)
}

function busy({ status, retryAfter }: PaymentAnswer, message: string): S3Error {
  const wait = retryAfter !== undefined && /^\d{1,6}$/.test(retryAfter) ? retryAfter : '2'
  return new S3Error(status === 429 ? 'SlowDown' : 'UpstreamUnavailable', {
    message: `The payment service cannot do this now: ${quote(message) || status}`,
    headers: { 'retry-after': wait },
  })
}

/** The data of a successful answer in its form. Throws UpstreamBadResponse, and as `successOf`. */
export function dataOf<T>(answer: PaymentAnswer, schema: z.ZodType<T>, refusals?: Refusals): T {
  const read = schema.safeParse(successOf(answer, refusals).data)
  if (read.success) return read.data
  throw badResponse('The payment service gave an unexpected answer.')
}

/** Converts a lost answer of a request that may be repeated. */
export function repeatable(error: unknown): unknown {
  if (!(error instanceof AnswerLost)) return error
  return new S3Error(error.late ? 'UpstreamTimeout' : 'UpstreamUnavailable', { cause: error })
}

/** Converts a lost answer of a request that must not be repeated unseen. */
export function unrepeatable(error: unknown): unknown {
  if (!(error instanceof AnswerLost)) return error
  return new S3Error('OperationAborted', {
    message:
      'The answer of the payment service was lost, so that this may have been done or not. Look before you repeat it.',
    cause: error,
  })
}

function refused(message: string): S3Error {
  return new S3Error('PaymentRefused', {
    status: 409,
    message: `The payment service refuses this: ${message || 'it gives no reason'}`,
  })
}

export function badResponse(message: string): S3Error {
  return new S3Error('UpstreamBadResponse', { message })
}

function quote(said: string): string {
  return redact(said.trim().slice(0, QUOTED))
}

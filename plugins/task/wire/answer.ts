import { redact, S3Error } from 'dealgate'
import { z } from 'zod'
import { AnswerLost, type PlatformAnswer } from '../platform-client.js'

/** The platform refuses the token of a request, or wants one. */
export class TokenRefused extends Error {
  override readonly name = 'TokenRefused'
}

/** Errors for what only the call can name. */
export interface Refusals {
  /** The platform does not know what the path names. */
  missing?(): Error
  /** The account may not do this. Default ProviderRoleRequired. */
  forbidden?(message: string): S3Error
}

const word = z
  .union([z.string(), z.number(), z.boolean()])
  .nullish()
  .transform((value) => String(value ?? ''))

/** Envelope of every answer. Code and status words differ in case between deployments. */
const envelope = z.looseObject({ status: word, message: word, data: z.unknown().optional() })
export type Envelope = z.output<typeof envelope>

/** Longest part of a text of the platform that a message quotes, characters. */
const QUOTED = 500

/**
 * The envelope of an answer that reports success.
 * @throws TokenRefused, and S3Error for a refusal: InvalidArgument, PlatformRefused, SlowDown, UpstreamUnavailable,
 * UpstreamBadResponse, or one of `refusals`
 */
export function successOf(answer: PlatformAnswer, refusals: Refusals = {}): Envelope {
  const said = envelope.safeParse(answer.json).data
  const message = said?.message || said?.status || ''
  const { status } = answer
  if (status >= 200 && status < 300) {
    if (!said) throw badResponse('The task platform gave an answer that is not JSON.')
    if (said.status === '' || said.status.toLowerCase() === 'success') return said
    throw refusalOf(message, refusals)
  }
  if (status === 429) {
    const wait = answer.retryAfter
    throw new S3Error('SlowDown', {
      message: quote(message) || 'The task platform refuses further requests for now.',
      ...(wait !== undefined && /^\d{1,6}$/.test(wait) && { headers: { 'retry-after': wait } }),
    })
  }
  if (status >= 500) {
    throw new S3Error('UpstreamUnavailable', {
      message: `The task platform cannot do this now: ${quote(message) || status}`,
      headers: { 'retry-after': '2' },
    })
  }
  if (!said) throw badResponse(`The task platform answered with status ${status}, which this server does not know.`)
  if (status === 401) throw new TokenRefused(quote(message))
  if (status === 403) throw (refusals.forbidden ?? roleRequired)(quote(message))
  if (status === 404) throw refusals.missing?.() ?? refused(message)
  if (status === 400 || status === 413 || status === 415 || status === 422) throw invalid(message)
  throw refused(message)
}

/** Classifies a refusal that comes with status 200, as some deployments send it. */
function refusalOf(message: string, refusals: Refusals): Error {
  if (/\btoken\b|unauthori[sz]ed|\bexpired\b|\bpassword\b|credential|sign in|log ?in/i.test(message))
    return new TokenRefused(quote(message))
  if (/not found|no such|does not exist/i.test(message)) return refusals.missing?.() ?? refused(message)
  if (/permission|forbidden|not (?:the|your|a) /i.test(message)) {
    return (refusals.forbidden ?? roleRequired)(quote(message))
  }
  return refused(message)
}

/** The data of a successful answer in its form. Throws UpstreamBadResponse, and what `successOf` throws. */
export function dataOf<T>(answer: PlatformAnswer, schema: z.ZodType<T>, refusals?: Refusals): T {
  return inForm(successOf(answer, refusals).data, schema)
}

/** Throws UpstreamBadResponse. */
export function inForm<T>(value: unknown, schema: z.ZodType<T>): T {
  const read = schema.safeParse(value)
  if (read.success) return read.data
  throw badResponse('The task platform gave an unexpected answer.')
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
      'The answer of the task platform was lost, so that this may have been done or not. Look before you repeat it.',
    cause: error,
  })
}

export function refused(message: string): S3Error {
  return new S3Error('PlatformRefused', {
    status: 409,
    message: `The task platform refuses this: ${quote(message) || 'it gives no reason'}`,
  })
}

function invalid(message: string): S3Error {
  return new S3Error('InvalidArgument', { message: `The task platform refuses this: ${quote(message)}` })
}

function roleRequired(message: string): S3Error {
  return new S3Error('ProviderRoleRequired', {
    ...(message !== '' && { message: `The task platform says: ${message}` }),
  })
}

function badResponse(message: string): S3Error {
  return new S3Error('UpstreamBadResponse', { message })
}

/** The platform's own text, for a message. */
export function quote(text: string): string {
  return redact(text.trim().slice(0, QUOTED))
}

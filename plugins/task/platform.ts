import { AnswerReader, type Envelope, quoted, TokenRefused } from 'dealgate/paid'
import { S3Error, taskFields } from 'dealgate/plugin'

export interface Refusals {
  /** The platform does not know what the path names. */
  missing(): Error
  /** The account may not do this. Default ProviderRoleRequired. */
  forbidden(message: string): S3Error
}

/** The answers of the platform. A refusal is TokenRefused, InvalidArgument, PlatformRefused, or one of `Refusals`. */
export const platform = new AnswerReader<Refusals>({
  service: 'task platform',
  refusal(status, said, refusals) {
    const message = quoted(said.message || said.status)
    switch (kindOf(status, said)) {
      case 'token':
        return new TokenRefused(message)
      case 'forbidden':
        return (refusals.forbidden ?? roleRequired)(message)
      case 'missing':
        return refusals.missing?.() ?? refused(message)
      case 'invalid':
        return new S3Error('InvalidArgument', { message: `The task platform refuses this: ${message}` })
      default:
        return refused(message)
    }
  },
})

const KINDS: Readonly<Record<number, 'token' | 'forbidden' | 'missing' | 'invalid'>> = {
  400: 'invalid',
  401: 'token',
  403: 'forbidden',
  404: 'missing',
  413: 'invalid',
  415: 'invalid',
  422: 'invalid',
}

/** Some deployments send refusals with status 200: only their texts tell them apart. */
function kindOf(status: number, { message, status: word }: Envelope) {
  if (status >= 300) return KINDS[status]
  const text = message || word
  if (/\btoken\b|unauthori[sz]ed|\bexpired\b|\bpassword\b|credential|sign in|log ?in/i.test(text)) return 'token'
  if (/not found|no such|does not exist/i.test(text)) return 'missing'
  return /permission|forbidden|not (?:the|your|a) /i.test(text) ? 'forbidden' : undefined
}

function refused(message: string): S3Error {
  return new S3Error('PlatformRefused', {
    status: 409,
    message: `The task platform refuses this: ${message || 'it gives no reason'}`,
  })
}

function roleRequired(message: string): S3Error {
  return new S3Error('ProviderRoleRequired', {
    ...(message !== '' && { message: `The task platform says: ${message}` }),
  })
}

/**
 * Fields that requests to the task platform have, and the names under which clients of such platforms send them. Some
 * deployments read one spelling and some another, so that all of them are sent.
 */
const SPELLINGS = {
  Email: ['email'],
  Password: ['password'],
  KeyName: ['key_name'],
  ApiKey: ['apikey'],
  AccessToken: ['access_token'],
  ...taskFields,
  File: ['file'],
} as const

type FieldName = keyof typeof SPELLINGS

export const FIELD_NAMES = Object.keys(SPELLINGS) as [FieldName, ...FieldName[]]

/** Fields of a request as name and value, in every spelling, or in the configured one. Leaves out undefined values. */
export function spelled(
  values: Partial<Record<FieldName, string | undefined>>,
  configured: Partial<Record<FieldName, string | undefined>>,
): [name: string, value: string][] {
  return FIELD_NAMES.flatMap((field) => {
    const value = values[field]
    return value === undefined ? [] : namesOf(field, configured).map((name): [string, string] => [name, value])
  })
}

/** Names of a field on the wire. */
export function namesOf(
  field: FieldName,
  configured: Partial<Record<FieldName, string | undefined>>,
): readonly string[] {
  const own = configured[field]
  return own === undefined ? SPELLINGS[field] : [own]
}

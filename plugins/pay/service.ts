import { AnswerReader, badResponse, type Envelope, lenient, quoted, TokenRefused } from 'dealgate/paid'
import { S3Error, type ServiceClient } from 'dealgate/plugin'
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

/** Wallets sign a nonce as text, and no other text than digits is handed out to be signed. */
export const NONCE = /^\d{1,78}$/

/** Gets a nonce that a wallet signs to sign in. Throws UpstreamBadResponse for one that is not digits, and others. */
export async function nonceFor(client: ServiceClient, address: string, signal?: AbortSignal): Promise<string> {
  const answer = await client.send({
    method: 'POST',
    path: apiPath('user', 'register'),
    body: { kind: 'json', value: { public_key_address: address } },
    ...(signal && { signal }),
  })
  const { nonce } = service.dataOf(answer, z.object({ nonce: lenient.text }))
  if (!NONCE.test(nonce)) throw badResponse('The payment service gave a nonce that is not digits: do not sign it.')
  return nonce
}

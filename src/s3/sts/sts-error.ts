import { S3Error } from '../../common/errors/s3-error.js'

/**
 * https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRoleWithWebIdentity.html#API_AssumeRoleWithWebIdentity_Errors
 */
const STATUSES = {
  ExpiredTokenException: 400,
  IDPCommunicationError: 400,
  InvalidAction: 400,
  InvalidIdentityToken: 400,
  MalformedPolicyDocument: 400,
  MissingAction: 400,
  MissingAuthenticationToken: 403,
  PackedPolicyTooLarge: 400,
  Throttling: 400,
  ValidationError: 400,
} as const

/** An error of the security token service. */
export function stsError(code: keyof typeof STATUSES, message: string, cause?: unknown): S3Error {
  return new S3Error(code, { status: STATUSES[code], message, ...(cause !== undefined && { cause }) })
}

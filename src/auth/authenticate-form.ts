import { ALGORITHM, signature, timingSafeEqualHex } from '../common/sigv4.js'
import { S3Error } from '../errors/s3-error.js'
import { headerBrands } from '../request/branded-header.js'
import type { AuthenticatorOptions } from './authenticate.js'
import type { Caller } from './caller.js'
import { checkScope } from './check-claim.js'
import { parseCredential, parseTimestamp, type Scope } from './claim.js'
import { SigningKeys } from './signing-keys.js'
import { unsupportedAlgorithm, unsupportedToken } from './unsupported.js'

/** The fields of a form, by lower-case name. */
export interface SignedFields {
  get(name: string): string | undefined
}

/**
 * Who signed the policy document of a form; undefined for a form that holds neither a policy nor a signature. The signature is over the policy alone: what the
 * form may hold is for the policy to say, and its expiration is for the caller to check.
 * @throws S3Error if there is a signature and it is not good in every respect
 */
export type AuthenticateForm = (fields: SignedFields) => Promise<Caller | undefined>

/** A signing key is good for a week: https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-HTTPPOSTForms.html */
const MAX_AGE_MS = 7 * 24 * 60 * 60 * 1000
const MAX_SKEW_MS = 15 * 60 * 1000

export function createFormAuthenticator(options: AuthenticatorOptions): AuthenticateForm {
  const { credentials, region, now = Date.now, sessionToken = 'refuse' } = options
  const keys = new SigningKeys()
  return async (fields) => {
    const claim = readClaim(fields)
    if (claim === undefined) return undefined
    if (sessionToken === 'refuse' && fields.get(claim.tokenField) !== undefined)
      throw unsupportedToken(claim.tokenField)
    checkScope({ ...claim, malformed }, region)
    checkAge(claim.time, now())
    const identity = await credentials(claim.accessKeyId)
    if (identity === undefined) {
      throw new S3Error('InvalidAccessKeyId', { fields: { AWSAccessKeyId: claim.accessKeyId } })
    }
    if (!timingSafeEqualHex(signature(keys.get(identity, claim.scope), claim.policy), claim.signature)) {
      throw new S3Error('SignatureDoesNotMatch', {
        fields: { AWSAccessKeyId: claim.accessKeyId, StringToSign: claim.policy, SignatureProvided: claim.signature },
      })
    }
    return { identity, presigned: false, payload: { kind: 'unsigned' } }
  }
}

interface FormClaim {
  readonly accessKeyId: string
  readonly scope: Scope
  readonly timestamp: string
  readonly time: number
  readonly signature: string
  /** As it stands in the form: base64, which is what was signed. */
  readonly policy: string
  readonly tokenField: string
}

function readClaim(fields: SignedFields): FormClaim | undefined {
  const policy = fields.get('policy')
  const [brand, other] = headerBrands.filter((word) => fields.get(`x-${word}-signature`) !== undefined)
  if (brand === undefined && policy === undefined) return undefined
  if (other !== undefined) throw malformed('The form is signed twice.')
  if (brand === undefined && fields.get('awsaccesskeyid') !== undefined) throw unsupportedAlgorithm('AWS')
  const required = (name: string): string => {
    const value = fields.get(name)
    if (value) return value
    throw new S3Error('InvalidArgument', {
      message: `Bucket POST must contain a field named '${name}'. If it is specified, please check the order of the fields.`,
      fields: { ArgumentName: name },
    })
  }
  const word = brand ?? 'amz'
  const signed = required(`x-${word}-signature`)
  const document = required('policy')
  const algorithm = required(`x-${word}-algorithm`)
  if (algorithm !== ALGORITHM) throw malformed(`x-${word}-algorithm must be ${ALGORITHM}.`)
  const timestamp = required(`x-${word}-date`)
  const time = parseTimestamp(timestamp)
  if (time === undefined) throw malformed(`x-${word}-date must be such as 20130524T000000Z.`)
  return {
    ...parseCredential(required(`x-${word}-credential`), malformed),
    timestamp,
    time,
    signature: signed,
    policy: document,
    tokenField: `x-${word}-security-token`,
  }
}

function checkAge(time: number, now: number): void {
  if (time - now > MAX_SKEW_MS) {
    throw new S3Error('AccessDenied', { message: 'The form is not valid yet: its date lies in the future.' })
  }
  if (now - time > MAX_AGE_MS) {
    throw new S3Error('AccessDenied', {
      message: 'The form has expired: a signature is good for seven days, whatever its policy says.',
    })
  }
}

function malformed(message: string, fields?: Record<string, string>): S3Error {
  return new S3Error('InvalidArgument', { message, ...(fields && { fields }) })
}

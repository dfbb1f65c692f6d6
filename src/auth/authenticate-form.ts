import { S3Error } from '../../common/errors/s3-error.js'
import { ALGORITHM, signature, timingSafeEqualHex } from '../../common/sigv4.js'
import { DAY_MS, MINUTE_MS } from '../../common/time.js'
import type { AuthenticateForm, SignedFields } from '../api/identity.js'
import { headerBrands } from '../http/headers.js'
import type { AuthenticatorOptions } from './authenticate.js'
import { checkScope } from './signatures/checks.js'
import { parseCredential, parseTimestamp, type Scope, unsupportedAlgorithm } from './signatures/parsed-signature.js'
import { SigningKeys } from './signatures/signing-keys.js'
import { signature as signatureOfVersion2, VERSION_2 } from './signatures/version-2.js'
import { createSigners } from './signer.js'

/** A signing key is valid for a week: https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-HTTPPOSTForms.html */
const MAX_AGE_MS = 7 * DAY_MS
const MAX_SKEW_MS = 15 * MINUTE_MS

export function createFormAuthenticator(options: AuthenticatorOptions): AuthenticateForm {
  const { region, now = Date.now, signatureV2 = true } = options
  const keys = new SigningKeys()
  const signerOf = createSigners(options)
  return async (fields) => {
    const parsed = readSignature(fields, signatureV2)
    if (parsed === undefined) return undefined
    const { accessKeyId, policy, scope, tokenField: name } = parsed
    const value = fields.get(name)
    const find = signerOf(accessKeyId, value === undefined ? undefined : { name, value })
    if (scope) {
      checkScope({ ...scope, malformed }, region)
      checkAge(scope.time, now())
    }
    const signer = await find()
    const wanted = scope
      ? signature(keys.get(signer, scope.scope), policy)
      : signatureOfVersion2(signer.secretAccessKey, Buffer.from(policy).toString('latin1'))
    if (!timingSafeEqualHex(wanted, parsed.signature)) {
      throw new S3Error('SignatureDoesNotMatch', {
        fields: { AWSAccessKeyId: accessKeyId, StringToSign: policy, SignatureProvided: parsed.signature },
      })
    }
    const signatureVersion = scope ? ALGORITHM : VERSION_2
    const identity = await signer.admit()
    return { identity, presigned: false, signatureVersion, authType: 'POST', payload: { kind: 'unsigned' } }
  }
}

interface FormSignature {
  readonly accessKeyId: string
  /** Absent for version 2, whose signature has neither scope nor time: only its policy expires. */
  readonly scope?: { readonly scope: Scope; readonly timestamp: string; readonly time: number }
  readonly signature: string
  /** Base64, as sent: the signature covers this text. */
  readonly policy: string
  readonly tokenField: string
}

function readSignature(fields: SignedFields, signatureV2: boolean): FormSignature | undefined {
  const [brand, other] = headerBrands.filter((word) => fields.get(`x-${word}-signature`) !== undefined)
  const version2 = fields.get('awsaccesskeyid') !== undefined || fields.get('signature') !== undefined
  if (brand === undefined && !version2 && fields.get('policy') === undefined) return undefined
  if (other !== undefined || (brand !== undefined && fields.get('signature') !== undefined)) {
    throw malformed('The form is signed twice.')
  }
  if (brand !== undefined || !version2) return readVersion4(fields, brand ?? 'amz')
  if (!signatureV2) throw unsupportedAlgorithm(VERSION_2)
  return {
    accessKeyId: required(fields, 'awsaccesskeyid', 'AWSAccessKeyId'),
    signature: required(fields, 'signature', 'Signature'),
    policy: required(fields, 'policy'),
    tokenField: 'x-amz-security-token',
  }
}

function readVersion4(fields: SignedFields, brand: string): FormSignature {
  const signed = required(fields, `x-${brand}-signature`)
  const policy = required(fields, 'policy')
  const algorithm = required(fields, `x-${brand}-algorithm`)
  if (algorithm !== ALGORITHM) throw malformed(`x-${brand}-algorithm must be ${ALGORITHM}.`)
  const timestamp = required(fields, `x-${brand}-date`)
  const time = parseTimestamp(timestamp)
  if (time === undefined) throw malformed(`x-${brand}-date must have the form 20130524T000000Z.`)
  const { accessKeyId, scope } = parseCredential(required(fields, `x-${brand}-credential`), malformed)
  return {
    accessKeyId,
    scope: { scope, timestamp, time },
    signature: signed,
    policy,
    tokenField: `x-${brand}-security-token`,
  }
}

/** @param shown the name in S3's message */
function required(fields: SignedFields, name: string, shown = name): string {
  const value = fields.get(name)
  if (value) return value
  throw new S3Error('InvalidArgument', {
    message: `Bucket POST must contain a field named '${shown}'. If it is specified, please check the order of the fields.`,
    fields: { ArgumentName: shown },
  })
}

function checkAge(time: number, now: number): void {
  if (time - now > MAX_SKEW_MS) {
    throw new S3Error('AccessDenied', { message: 'The form is not valid yet: its date is in the future.' })
  }
  if (now - time > MAX_AGE_MS) {
    throw new S3Error('AccessDenied', {
      message:
        'The form has expired: a signature is valid for at most seven days, regardless of the expiration in its policy.',
    })
  }
}

function malformed(message: string, fields?: Record<string, string>): S3Error {
  return new S3Error('InvalidArgument', { message, ...(fields && { fields }) })
}

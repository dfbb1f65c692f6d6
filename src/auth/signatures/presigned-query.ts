import { S3Error } from '../../../common/errors/s3-error.js'
import { ALGORITHM, type Brand } from '../../../common/sigv4.js'
import type { RequestHead } from '../../api/request.js'
import { brandedHeader } from '../../http/headers.js'
import { type ParsedSignature, parseCredential, parseSignedHeaders, parseTimestamp } from './parsed-signature.js'

const malformed = (message: string, fields?: Record<string, string>) =>
  new S3Error('AuthorizationQueryParametersError', { message, ...(fields && { fields }) })

const BRANDS: readonly Brand[] = ['Amz', 'Cloud']
/** Any of these parameters marks a request as presigned. */
const MARKS = ['Signature', 'Credential', 'Algorithm'] as const
const MAX_EXPIRES_S = 604_800

/** Returns the brand of the signature parameters in the query, or undefined without such parameters. */
export function presignedBrand({ rawQuery, query }: RequestHead): Brand | undefined {
  if (rawQuery === '') return undefined
  const names = new Set(query.entries.map(([name]) => name.toLowerCase()))
  const [brand, other] = BRANDS.filter((word) => MARKS.some((mark) => names.has(`x-${word}-${mark}`.toLowerCase())))
  if (other !== undefined) throw malformed(`The query mixes signature parameters of X-${brand}- and X-${other}-.`)
  return brand
}

/**
 * Parses the signature parameters of a presigned URL.
 * https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-query-string-auth.html
 */
export function parsePresignedQuery(brand: Brand, head: RequestHead): ParsedSignature {
  const parameter = (suffix: string) => onlyValue(head, `X-${brand}-${suffix}`)
  const required = (suffix: string) => {
    const value = parameter(suffix)
    if (!value) throw malformed(`A presigned URL requires the parameter X-${brand}-${suffix}.`)
    return value
  }
  const algorithm = required('Algorithm')
  // S3 has the same error for those that it knows and does not take, such as AWS4-ECDSA-P256-SHA256 elsewhere.
  if (algorithm !== ALGORITHM)
    throw malformed(`X-${brand}-Algorithm only supports "${ALGORITHM}", not ${algorithm.slice(0, 64)}.`)
  const credential = required('Credential')
  const timestamp = required('Date')
  const expires = parseExpires(`X-${brand}-Expires`, required('Expires'))
  const signedHeaders = required('SignedHeaders')
  const signature = required('Signature')
  const time = parseTimestamp(timestamp)
  if (time === undefined) throw malformed(`X-${brand}-Date must have the form 20130524T000000Z.`)
  return {
    presigned: true,
    ...parseCredential(credential, malformed),
    signedHeaders: parseSignedHeaders(signedHeaders, malformed),
    signature,
    timestamp,
    time,
    expires,
    payloadHash: pinnedHash(`X-${brand}-Content-Sha256`, parameter('Content-Sha256'), head),
    signatureParameter: `x-${brand}-signature`.toLowerCase(),
    malformed,
  }
}

/** Ignores case: presigners that move headers into the query leave their names lower-case. */
function onlyValue({ query }: RequestHead, name: string): string | undefined {
  const lower = name.toLowerCase()
  const values = query.entries.filter(([found]) => found.toLowerCase() === lower)
  if (values.length > 1) throw malformed(`The parameter ${name} is given more than once.`)
  return values[0]?.[1]
}

/** With the texts of S3. */
function parseExpires(name: string, text: string): number {
  if (!/^-?\d{1,16}$/.test(text)) throw malformed(`${name} should be a number`)
  const seconds = Number(text)
  if (seconds < 0) throw malformed(`${name} must be non-negative`)
  if (seconds > MAX_EXPIRES_S) {
    throw malformed(
      `${name} must be less than a week (in seconds); that is, the given ${name} must be less than ${MAX_EXPIRES_S} seconds`,
    )
  }
  return seconds
}

/** A presigned URL may pin the hash of the request body, in a parameter or in a signed header. */
function pinnedHash(name: string, parameter: string | undefined, head: RequestHead): string | undefined {
  const header = brandedHeader(head.headers, 'content-sha256')
  if (parameter !== undefined && header !== undefined && parameter !== header.value) {
    throw new S3Error('InvalidArgument', {
      message: `The parameter ${name} and the header ${header.name} have different values.`,
      fields: { ArgumentName: header.name },
    })
  }
  return parameter ?? header?.value
}

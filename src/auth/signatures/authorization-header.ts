import { S3Error } from '../../../common/errors/s3-error.js'
import { ALGORITHM, formatTimestamp } from '../../../common/sigv4.js'
import type { RequestHead } from '../../api/request.js'
import { brandedHeader } from '../../http/headers.js'
import { type ParsedSignature, parseTimestamp, SignatureCache, unsupportedAlgorithm } from './parsed-signature.js'

const malformed = (message: string, fields?: Record<string, string>) =>
  new S3Error('AuthorizationHeaderMalformed', {
    message: `The Authorization header is malformed: ${message}`,
    ...(fields && { fields }),
  })

const COMPONENTS = ['Credential', 'SignedHeaders', 'Signature'] as const
/** Longest header of which parts are remembered, characters. */
const MAX_REMEMBERED_LENGTH = 1024

type Component = (typeof COMPONENTS)[number]

/**
 * Parses `AWS4-HMAC-SHA256 Credential=..., SignedHeaders=..., Signature=...` and the related headers.
 * https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-auth-using-authorization-header.html
 */
export function parseAuthorizationHeader(
  authorization: string,
  head: RequestHead,
  remembered: SignatureCache,
): ParsedSignature {
  const space = authorization.indexOf(' ')
  if (space < 0) throw oneWord(authorization)
  const algorithm = authorization.slice(0, space)
  if (algorithm !== ALGORITHM) throw unsupportedAlgorithm(algorithm)
  const { Credential, SignedHeaders, Signature } = parseComponents(authorization.slice(ALGORITHM.length))
  // Parts of a text keep the whole of it in memory.
  const parts = authorization.length > MAX_REMEMBERED_LENGTH ? new SignatureCache(1) : remembered
  const { accessKeyId, scope } = parts.credential(Credential, malformed)
  const signedHeaders = parts.signedHeaders(SignedHeaders, malformed)
  const { timestamp, time } = requestTime(head)
  return {
    presigned: false,
    accessKeyId,
    scope,
    signedHeaders,
    signature: Signature,
    timestamp,
    time,
    expires: undefined,
    payloadHash: brandedHeader(head.headers, 'content-sha256')?.value,
    signatureParameter: undefined,
    malformed,
  }
}

/** With the text of S3. The header is not shown: it may hold a signature. */
function oneWord(authorization: string): S3Error {
  return new S3Error('InvalidArgument', {
    message:
      authorization === ''
        ? `Authorization must start with ${ALGORITHM}, the only supported scheme.`
        : "Authorization header is invalid -- one and only one ' ' (space) required",
    fields: { ArgumentName: 'Authorization' },
  })
}

function parseComponents(text: string): Record<Component, string> {
  const found: { [Name in Component]: string | undefined } = {
    Credential: undefined,
    SignedHeaders: undefined,
    Signature: undefined,
  }
  for (let from = 0; from <= text.length; ) {
    const comma = text.indexOf(',', from)
    const end = comma < 0 ? text.length : comma
    const component = text.slice(from, end).trim()
    const name = COMPONENTS.find((known) => component.startsWith(known) && component[known.length] === '=')
    if (name === undefined) {
      throw malformed(
        `the algorithm must be followed by ${COMPONENTS.join(', ')}, each as name=value, separated by commas.`,
      )
    }
    if (found[name] !== undefined) throw malformed(`${name} is given twice.`)
    found[name] = component.slice(name.length + 1)
    from = end + 1
  }
  const { Credential, SignedHeaders, Signature } = found
  if (!Credential) throw malformed('Credential is missing.')
  if (!SignedHeaders) throw malformed('SignedHeaders is missing.')
  if (!Signature) throw malformed('Signature is missing.')
  return { Credential, SignedHeaders, Signature }
}

/**
 * Reads x-amz-date, else Date. Date holds an HTTP date, or one of a mail with the zone -0000 (botocore); clients sign
 * it in the format of x-amz-date.
 */
function requestTime({ headers }: RequestHead): { timestamp: string; time: number } {
  const branded = brandedHeader(headers, 'date')
  const text = branded?.value ?? headers.date
  if (text !== undefined) {
    const time = parseTimestamp(text)
    if (time !== undefined) return { timestamp: text, time }
    const httpDate = branded === undefined && / (?:GMT|[+-]0000)$/.test(text) ? Date.parse(text) : Number.NaN
    if (!Number.isNaN(httpDate)) return { timestamp: formatTimestamp(new Date(httpDate)), time: httpDate }
  }
  throw new S3Error('AccessDenied', {
    message: 'A signed request requires its time in x-amz-date, such as 20130524T000000Z, or in Date.',
  })
}

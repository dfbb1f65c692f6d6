import { S3Error } from '../../common/errors/s3-error.js'
import { ALGORITHM, formatTimestamp } from '../../common/sigv4.js'
import { brandedHeader } from '../../request/addressing/branded-header.js'
import type { RequestHead } from '../../request/s3-request.js'
import { type ParsedSignature, parseCredential, parseSignedHeaders, parseTimestamp } from './parsed-signature.js'
import { unsupportedAlgorithm } from './unsupported.js'

const malformed = (message: string, fields?: Record<string, string>) =>
  new S3Error('AuthorizationHeaderMalformed', {
    message: `The Authorization header is malformed: ${message}`,
    ...(fields && { fields }),
  })

const COMPONENTS = ['Credential', 'SignedHeaders', 'Signature'] as const
type Component = (typeof COMPONENTS)[number]

/**
 * Parses `AWS4-HMAC-SHA256 Credential=..., SignedHeaders=..., Signature=...` and the related headers.
 * https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-auth-using-authorization-header.html
 */
export function parseAuthorizationHeader(authorization: string, head: RequestHead): ParsedSignature {
  const space = authorization.indexOf(' ')
  const algorithm = space < 0 ? authorization : authorization.slice(0, space)
  if (algorithm !== ALGORITHM) throw unsupportedAlgorithm(algorithm)
  const components = parseComponents(authorization.slice(ALGORITHM.length))
  return {
    presigned: false,
    ...parseCredential(components.Credential, malformed),
    signedHeaders: parseSignedHeaders(components.SignedHeaders, malformed),
    signature: components.Signature,
    ...requestTime(head),
    expires: undefined,
    payloadHash: brandedHeader(head.headers, 'content-sha256')?.value,
    signatureParameter: undefined,
    malformed,
  }
}

function parseComponents(text: string): Record<Component, string> {
  const found: Partial<Record<Component, string>> = {}
  for (const part of text.split(',')) {
    const component = part.trim()
    const at = component.indexOf('=')
    const name = COMPONENTS.find((known) => known === component.slice(0, Math.max(at, 0)))
    if (name === undefined) {
      throw malformed(
        `the algorithm must be followed by ${COMPONENTS.join(', ')}, each as name=value, separated by commas.`,
      )
    }
    if (found[name] !== undefined) throw malformed(`${name} is given twice.`)
    found[name] = component.slice(at + 1)
  }
  const { Credential, SignedHeaders, Signature } = found
  if (!Credential) throw malformed('Credential is missing.')
  if (!SignedHeaders) throw malformed('SignedHeaders is missing.')
  if (!Signature) throw malformed('Signature is missing.')
  return { Credential, SignedHeaders, Signature }
}

/** Reads x-amz-date, else Date. Date holds an HTTP date; clients sign it in the format of x-amz-date. */
function requestTime({ headers }: RequestHead): { timestamp: string; time: number } {
  const branded = brandedHeader(headers, 'date')
  const text = branded?.value ?? headers.date
  if (text !== undefined) {
    const time = parseTimestamp(text)
    if (time !== undefined) return { timestamp: text, time }
    const httpDate = branded === undefined && / GMT$/.test(text) ? Date.parse(text) : Number.NaN
    if (!Number.isNaN(httpDate)) return { timestamp: formatTimestamp(new Date(httpDate)), time: httpDate }
  }
  throw new S3Error('AccessDenied', {
    message: 'A signed request requires its time in x-amz-date, such as 20130524T000000Z, or in Date.',
  })
}

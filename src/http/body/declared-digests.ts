import type { IncomingHttpHeaders } from 'node:http'
import { hasUnknownCoding } from '../../../common/broken-request.js'
import {
  type ChecksumAlgorithm,
  checksumAlgorithms,
  checksumHeader,
  isChecksumValue,
  parseChecksumAlgorithm,
} from '../../../common/checksums/checksums.js'
import { S3Error } from '../../../common/errors/s3-error.js'
import type { PayloadMode } from '../../api/identity.js'
import type { RequestHead } from '../../api/request.js'
import { brandedHeader, headerBrands } from '../headers.js'

interface DeclaredChecksum {
  readonly algorithm: ChecksumAlgorithm
  /** Base64. */
  readonly value: string
}

/** The digests that the head of a request declares for the body: well-formed, not yet verified. */
export interface DeclaredDigests {
  /** Hex, or anything else that no body has. */
  readonly sha256: string | undefined
  readonly md5: Buffer | undefined
  readonly checksum: DeclaredChecksum | undefined
  /** The algorithm of the checksum that the trailer must contain. */
  readonly trailer: ChecksumAlgorithm | undefined
}

/**
 * Reads x-amz-content-sha256 (through `payload`), Content-MD5, x-amz-checksum-*, x-amz-trailer and
 * x-amz-sdk-checksum-algorithm.
 * https://docs.aws.amazon.com/AmazonS3/latest/userguide/checking-object-integrity-upload.html
 *
 * `hoistedHeaders` adds those in the query of a presigned URL to the headers.
 * @param framed the body is aws-chunked and may have a trailer
 * @throws S3Error InvalidDigest, InvalidRequest, NotImplemented
 */
export function declaredDigests(
  head: RequestHead,
  payload: PayloadMode,
  { framed = false }: { readonly framed?: boolean } = {},
): DeclaredDigests {
  const checksum = describesObject(head) ? undefined : checksumInHeader(head)
  const trailer = trailerChecksum(head)
  if (checksum !== undefined && trailer !== undefined) {
    throw invalid('Expecting a single x-amz-checksum- header', 'One is in a header, and one is to be in the trailer.')
  }
  if (trailer !== undefined && !framed) {
    throw new S3Error('MalformedTrailerError', {
      fields: { Reason: 'x-amz-trailer requires an aws-chunked body in a form that allows a trailer.' },
    })
  }
  checkSdkAlgorithm(head, checksum?.algorithm ?? trailer)
  return { sha256: payload.kind === 'signed' ? payload.sha256 : undefined, md5: contentMd5(head), checksum, trailer }
}

/** True for CompleteMultipartUpload, whose body is a document and whose checksum headers describe the object. */
function describesObject({ method, query }: RequestHead): boolean {
  return method === 'POST' && query.has('uploadId')
}

function contentMd5({ headers }: RequestHead): Buffer | undefined {
  const value = headers['content-md5']
  if (value === undefined) return undefined
  // Node's types omit this header; every header except set-cookie is a string.
  const bytes = Buffer.from(String(value), 'base64')
  if (bytes.length !== 16 || bytes.toString('base64') !== value) {
    throw new S3Error('InvalidDigest', {
      message: 'The Content-MD5 you specified was invalid.',
      fields: { 'Content-MD5': String(value).slice(0, 200), Reason: 'It must be base64 of the 16 bytes of an MD5.' },
    })
  }
  return bytes
}

const CHECKSUM_PREFIXES = headerBrands.map((brand) => `x-${brand}-checksum-`)

/** Suffixes of x-amz-checksum- headers that contain no checksum. */
const NO_VALUES = new Set(['algorithm', 'mode', 'type'])

function checksumInHeader({ headers }: RequestHead): DeclaredChecksum | undefined {
  const found: { name: string; suffix: string }[] = []
  for (const name of Object.keys(headers)) {
    if (!name.startsWith('x-')) continue
    for (const prefix of CHECKSUM_PREFIXES) {
      if (!name.startsWith(prefix) || NO_VALUES.has(name.slice(prefix.length))) continue
      found.push({ name, suffix: name.slice(prefix.length) })
    }
  }
  const [only, other] = found
  if (only === undefined) return undefined
  if (other !== undefined) throw invalid(MULTIPLE, `The request has ${only.name} and ${other.name}.`)
  const algorithm = parseChecksumAlgorithm(only.suffix)
  if (algorithm === undefined) {
    throw invalid('The algorithm type you specified in x-amz-checksum- header is invalid.', `Known are ${known()}.`)
  }
  const value = String(headers[only.name])
  if (!isChecksumValue(algorithm, value))
    throw invalid(`Value for ${only.name} header is invalid.`, `It is not a ${algorithm} checksum in base64.`)
  return { algorithm, value }
}

function trailerChecksum({ headers }: RequestHead): ChecksumAlgorithm | undefined {
  const declared = brandedHeader(headers, 'trailer')
  if (declared === undefined) return undefined
  // S3 accepts trailing commas, which carelessly joined lists have, and nothing else.
  const name = declared.value.trim().replace(/,+$/, '').toLowerCase()
  const algorithm = checksumAlgorithms.find((a) => checksumHeader(a) === name)
  if (algorithm !== undefined) return algorithm
  const names = name.split(',').map((one) => one.trim())
  if (names.length > 1 && names.every((one) => CHECKSUM_PREFIXES.some((prefix) => one.startsWith(prefix))))
    throw invalid(MULTIPLE, `${declared.name} names ${names.length}.`)
  throw invalid(
    `The value specified in the ${declared.name} header is not supported`,
    `It must name one checksum, such as ${checksumHeader('CRC32')}; known are ${known()}.`,
  )
}

function checkSdkAlgorithm({ headers }: RequestHead, declared: ChecksumAlgorithm | undefined): void {
  const sdk = brandedHeader(headers, 'sdk-checksum-algorithm')
  if (sdk === undefined) return
  const algorithm = parseChecksumAlgorithm(sdk.value)
  const unfit = `Value for ${sdk.name} header is invalid.`
  if (algorithm === undefined) throw invalid(unfit, `Known are ${known()}.`)
  if (declared === undefined)
    throw invalid(`${sdk.name} specified, but no corresponding x-amz-checksum-* or x-amz-trailer headers were found.`)
  if (declared !== algorithm) throw invalid(unfit, `It is ${algorithm}, but the checksum given is ${declared}.`)
}

function known(): string {
  return checksumAlgorithms.join(', ')
}

const MULTIPLE = 'Expecting a single x-amz-checksum- header. Multiple checksum Types are not allowed.'

/** @param message as S3 has it, because other suites and clients compare it */
function invalid(message: string, reason?: string): S3Error {
  return new S3Error('InvalidRequest', { message, ...(reason !== undefined && { fields: { Reason: reason } }) })
}

/** Upload framing that clients declare as a content coding. */
const AWS_CHUNKED = 'aws-chunked'

export function hasAwsChunked(contentEncoding: string | undefined): boolean {
  return contentEncoding !== undefined && codings(contentEncoding).some(isAwsChunked)
}

/** Returns the Content-Encoding to store with the object; undefined if it names only the framing. */
export function storedContentEncoding(contentEncoding: string | undefined): string | undefined {
  if (contentEncoding === undefined || !hasAwsChunked(contentEncoding)) return contentEncoding
  return (
    codings(contentEncoding)
      .filter((coding) => !isAwsChunked(coding))
      .join(',') || undefined
  )
}

function codings(contentEncoding: string): string[] {
  return contentEncoding
    .split(',')
    .map((coding) => coding.trim())
    .filter(Boolean)
}

function isAwsChunked(coding: string): boolean {
  return coding.toLowerCase() === AWS_CHUNKED
}

/** True if a body may follow the head: RFC 9112, section 6.3. Node refuses a Content-Length that is not a number. */
export function declaresBody(headers: IncomingHttpHeaders): boolean {
  if (headers['transfer-encoding'] !== undefined) return true
  return headers['content-length'] !== undefined && Number(headers['content-length']) > 0
}

/** @throws S3Error NotImplemented for a transfer coding other than chunked, as RFC 9112 section 6.1 requires */
export function refuseTransferCodings(headers: IncomingHttpHeaders): void {
  if (!hasUnknownCoding(headers)) return
  throw new S3Error('NotImplemented', { message: 'The only transfer coding that is implemented is chunked.' })
}

/** True if the client knows the length of the body. Then it knows the length without framing too. */
export function declaresLength(headers: IncomingHttpHeaders): boolean {
  return headers['transfer-encoding'] === undefined && headers['content-length'] !== undefined
}

/** Length of the body including framing, bytes; undefined with Transfer-Encoding: chunked. */
export function wireLength(headers: IncomingHttpHeaders): number | undefined {
  return headers['transfer-encoding'] === undefined ? Number(headers['content-length'] ?? 0) : undefined
}

/**
 * Reads x-amz-decoded-content-length: bytes of an aws-chunked body without its framing. With an unsigned trailer, SDKs
 * omit the header if they do not know the length.
 * @throws S3Error MissingContentLength if it is required and absent, or not a length
 */
export function decodedLength(
  headers: IncomingHttpHeaders,
  { required = false }: { readonly required?: boolean } = {},
): number | undefined {
  const declared = brandedHeader(headers, 'decoded-content-length')
  if (declared === undefined) {
    if (!required) return undefined
    throw new S3Error('MissingContentLength', {
      fields: { Reason: 'The body requires x-amz-decoded-content-length, its length without framing.' },
    })
  }
  const length = /^\d{1,16}$/.test(declared.value) ? Number(declared.value) : Number.NaN
  if (!Number.isSafeInteger(length)) {
    throw new S3Error('MissingContentLength', {
      fields: {
        ArgumentName: declared.name,
        ArgumentValue: declared.value.slice(0, 80),
        Reason: `${declared.name} must be a number of bytes.`,
      },
    })
  }
  return length
}

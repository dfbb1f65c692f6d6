import { LRUCache } from 'lru-cache'
import { S3Error } from '../../../common/errors/s3-error.js'
import { ALGORITHM, UNSIGNED_PAYLOAD } from '../../../common/sigv4.js'
import type { ChunkSigning, PayloadMode } from '../../api/identity.js'
import type { RequestHead } from '../../api/request.js'
import { brandedHeader } from '../../http/headers.js'

/** The signature of a request and its parameters: well-formed, not yet verified. */
export interface ParsedSignature {
  /** True if the query holds the signature. */
  readonly presigned: boolean
  readonly accessKeyId: string
  readonly scope: Scope
  /** Lower-case, ascending, unique. */
  readonly signedHeaders: readonly string[]
  readonly signature: string
  /** 20130524T000000Z */
  readonly timestamp: string
  /** `timestamp` in ms since 1970. */
  readonly time: number
  /** Seconds after `time`; presigned only. */
  readonly expires: number | undefined
  /** x-amz-content-sha256 as sent and signed: a hash, or a keyword such as UNSIGNED-PAYLOAD. */
  readonly payloadHash: string | undefined
  /** Lower-case name of the query parameter that holds the signature and is excluded from the canonical query. */
  readonly signatureParameter: string | undefined
  /** Creates the error for a wrong component. Its code depends on whether the header or the query held it. */
  readonly malformed: Malformed
}

type Malformed = (message: string, fields?: Record<string, string>) => S3Error

export interface Scope {
  /** 20130524 */
  readonly date: string
  readonly region: string
  readonly service: string
  readonly terminal: string
  /** All four parts joined with slashes, as sent. */
  readonly text: string
}

/** Splits `AKID/20130524/us-east-1/s3/aws4_request` from the end: an access key id may contain slashes. */
export function parseCredential(credential: string, malformed: Malformed): { accessKeyId: string; scope: Scope } {
  const parts = credential.split('/')
  const [date, region, service, terminal] = parts.slice(-4)
  const accessKeyId = parts.slice(0, -4).join('/')
  if (
    date === undefined ||
    region === undefined ||
    service === undefined ||
    terminal === undefined ||
    accessKeyId === ''
  ) {
    throw malformed('Credential must have the form <access key id>/<yyyymmdd>/<region>/s3/aws4_request.')
  }
  if (!/^\d{8}$/.test(date)) throw malformed(`The date in Credential must be yyyymmdd, not "${date}".`)
  return { accessKeyId, scope: { date, region, service, terminal, text: parts.slice(-4).join('/') } }
}

/** Splits and sorts the list of signed headers: the canonical request lists them in ascending order. */
export function parseSignedHeaders(list: string, malformed: Malformed): readonly string[] {
  const names = list.toLowerCase().split(';')
  if (names.includes('')) throw malformed('SignedHeaders must be header names joined with semicolons.')
  const unique = [...new Set(names)].sort()
  if (unique.length !== names.length) throw malformed('SignedHeaders names a header twice.')
  if (!unique.includes('host')) throw notSigned(['host'])
  return unique
}

/** The error for headers of the request that the signature should cover and does not. */
export function notSigned(names: readonly string[]): S3Error {
  return new S3Error('AccessDenied', {
    message: 'There were headers present in the request which were not signed',
    fields: { HeadersNotSigned: names.join(', ') },
  })
}

const TIMESTAMP = /^\d{8}T(?:[01]\d|2[0-3])[0-5]\d[0-5]\dZ$/

/** Parses `20130524T000000Z` to ms since 1970. Returns undefined for other forms and for dates such as 31 February. */
export function parseTimestamp(text: string): number | undefined {
  if (!TIMESTAMP.test(text)) return undefined
  const number = (from: number, to: number) => Number(text.slice(from, to))
  const month = number(4, 6)
  const day = number(6, 8)
  const time = Date.UTC(number(0, 4), month - 1, day, number(9, 11), number(11, 13), number(13, 15))
  const date = new Date(time)
  // Date.UTC carries excess days and months over into the next month or year.
  return date.getUTCDate() === day && date.getUTCMonth() === month - 1 ? time : undefined
}

const SHA256_HEX = /^[0-9a-f]{64}$/i

/**
 * Determines how to read the body from the value of x-amz-content-sha256.
 * https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html
 * @param signing undefined for an unsigned request and for version 2, which cannot have signed chunks
 * @param form `strict` for requests with the header Authorization of version 4. In all others, S3 takes any other value
 *   for a hash, which no body matches, and which a request without a body does not need
 * @throws S3Error InvalidArgument; NotImplemented for other STREAMING-... forms, whose framing must never be stored as
 *   data; AccessDenied for signed chunks without `signing`
 */
export function payloadMode(
  value: string,
  signing: ChunkSigning | undefined,
  form: 'strict' | 'any' = 'any',
): PayloadMode {
  switch (value) {
    case UNSIGNED_PAYLOAD:
      return { kind: 'unsigned' }
    case 'STREAMING-UNSIGNED-PAYLOAD-TRAILER':
      return { kind: 'chunked', signing: undefined, trailer: true }
    case 'STREAMING-AWS4-HMAC-SHA256-PAYLOAD':
      return { kind: 'chunked', signing: signed(value, signing), trailer: false }
    case 'STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER':
      return { kind: 'chunked', signing: signed(value, signing), trailer: true }
  }
  if (value.startsWith('STREAMING-')) {
    throw new S3Error('NotImplemented', { message: `The payload form ${value.slice(0, 80)} is not supported.` })
  }
  if (form === 'any' || SHA256_HEX.test(value)) return { kind: 'signed', sha256: value }
  throw new S3Error('InvalidArgument', {
    message:
      'x-amz-content-sha256 must be UNSIGNED-PAYLOAD, STREAMING-UNSIGNED-PAYLOAD-TRAILER, STREAMING-AWS4-HMAC-SHA256-PAYLOAD, STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER, or a valid sha256 value.',
    fields: { ArgumentName: 'x-amz-content-sha256', ArgumentValue: value.slice(0, 80) },
  })
}

function signed(value: string, signing: ChunkSigning | undefined): ChunkSigning {
  if (signing !== undefined) return signing
  throw new S3Error('AccessDenied', {
    message: `A body in the form ${value} requires a request that is signed with ${ALGORITHM}.`,
  })
}

/**
 * Determines how to read the body of an unsigned request, or of one signed with version 2. Its declared hash is
 * verified as for other signed requests.
 */
export function anonymousPayload(head: RequestHead): PayloadMode {
  const declared = brandedHeader(head.headers, 'content-sha256')
  return declared === undefined ? { kind: 'unsigned' } : payloadMode(declared.value, undefined)
}

/** The error for an algorithm other than SigV4 with HMAC; `AWS` is signature version 2 where it is not accepted. */
export function unsupportedAlgorithm(algorithm: string): S3Error {
  if (algorithm === 'AWS') {
    // AWS's exact message: after other errors s3cmd tries version 2, and this text makes it return to version 4.
    return new S3Error('InvalidRequest', {
      message: `The authorization mechanism you have provided is not supported. Please use ${ALGORITHM}.`,
    })
  }
  if (algorithm.startsWith('AWS4-')) {
    return new S3Error('UnsupportedSignature', {
      message: `The algorithm ${algorithm.slice(0, 64)} is not supported. Sign with ${ALGORITHM}.`,
    })
  }
  return new S3Error('InvalidArgument', {
    message: `Authorization must start with ${ALGORITHM}, the only supported scheme.`,
    fields: { ArgumentName: 'Authorization' },
  })
}

export function unsupportedToken(name: string): S3Error {
  return new S3Error('InvalidToken', {
    message: `${name} belongs to temporary credentials, and this access key id is none that this service has issued for a session.`,
  })
}

type Credential = ReturnType<typeof parseCredential>

/** Most texts of each kind. */
const MAX_REMEMBERED = 1024

/**
 * Parts of the signatures of earlier requests, parsed: a client signs with one credential all day, and the same headers
 * in requests of one kind.
 */
export class SignatureCache {
  readonly #credentials: LRUCache<string, Credential>
  readonly #signedHeaders: LRUCache<string, readonly string[]>

  /** @param max texts of each kind */
  constructor(max = MAX_REMEMBERED) {
    this.#credentials = new LRUCache({ max })
    this.#signedHeaders = new LRUCache({ max })
  }

  /** See parseCredential. */
  credential(text: string, malformed: Malformed): Credential {
    const known = this.#credentials.get(text)
    return known ?? remember(this.#credentials, text, parseCredential(text, malformed))
  }

  /** See parseSignedHeaders. */
  signedHeaders(list: string, malformed: Malformed): readonly string[] {
    const known = this.#signedHeaders.get(list)
    return known ?? remember(this.#signedHeaders, list, parseSignedHeaders(list, malformed))
  }
}

function remember<T extends {}>(all: LRUCache<string, T>, text: string, parsed: T): T {
  all.set(text, parsed)
  return parsed
}

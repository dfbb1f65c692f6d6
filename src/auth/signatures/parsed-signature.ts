import type { S3Error } from '../../common/errors/s3-error.js'

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

export type Malformed = (message: string, fields?: Record<string, string>) => S3Error

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
  if (!unique.includes('host')) throw malformed('SignedHeaders must include host.')
  return unique
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

import type { S3Error } from '../errors/s3-error.js'

/** What a request says of its signature: well-formed, and not yet believed. */
export interface Claim {
  /** True if it came in the query. */
  readonly presigned: boolean
  readonly accessKeyId: string
  readonly scope: Scope
  /** Lower-case, ascending, without repeats. */
  readonly signedHeaders: readonly string[]
  readonly signature: string
  /** 20130524T000000Z */
  readonly timestamp: string
  /** The same in ms since 1970. */
  readonly time: number
  /** Seconds from `time`; presigned only. */
  readonly expires: number | undefined
  /** The hash of the payload or the word that stands for it, as sent and signed. */
  readonly payloadHash: string | undefined
  /** The query parameter that carries the signature and is no part of what is signed, lower-case. */
  readonly signatureParameter: string | undefined
  /** The error for a component that is wrong, in the code for where it came from. */
  readonly malformed: Malformed
}

export type Malformed = (message: string, fields?: Record<string, string>) => S3Error

export interface Scope {
  /** 20130524 */
  readonly date: string
  readonly region: string
  readonly service: string
  readonly terminal: string
  /** All four, with slashes, as sent. */
  readonly text: string
}

/** Splits `AKID/20130524/us-east-1/s3/aws4_request`, from the end: an access key id may hold a slash. */
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
    throw malformed('Credential must read <access key id>/<yyyymmdd>/<region>/s3/aws4_request.')
  }
  if (!/^\d{8}$/.test(date)) throw malformed(`The date in Credential must be yyyymmdd, not "${date}".`)
  return { accessKeyId, scope: { date, region, service, terminal, text: parts.slice(-4).join('/') } }
}

/** Splits and orders the list of signed headers: the canonical request has them ascending. */
export function parseSignedHeaders(list: string, malformed: Malformed): readonly string[] {
  const names = list.toLowerCase().split(';')
  if (names.includes('')) throw malformed('SignedHeaders must be header names joined with semicolons.')
  const unique = [...new Set(names)].sort()
  if (unique.length !== names.length) throw malformed('SignedHeaders names a header twice.')
  if (!unique.includes('host')) throw malformed('SignedHeaders must include host.')
  return unique
}

const TIMESTAMP = /^(\d{4})(\d\d)(\d\d)T([01]\d|2[0-3])([0-5]\d)([0-5]\d)Z$/

/** The time of `20130524T000000Z` in ms since 1970; undefined for anything else, also for the 31st of February. */
export function parseTimestamp(text: string): number | undefined {
  const match = TIMESTAMP.exec(text)
  if (match === null) return undefined
  const [, year, month, day, hour, minute, second] = match.map(Number) as [
    0,
    number,
    number,
    number,
    number,
    number,
    number,
  ]
  const time = Date.UTC(year, month - 1, day, hour, minute, second)
  const date = new Date(time)
  // Date.UTC carries what is too much over into the next month or year.
  return date.getUTCDate() === day && date.getUTCMonth() === month - 1 ? time : undefined
}

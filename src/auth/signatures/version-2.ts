import { createHmac } from 'node:crypto'
import { S3Error } from '../../../common/errors/s3-error.js'
import type { RequestHead } from '../../api/request.js'
import { brandedHeader } from '../../http/headers.js'
import { checkTime } from './checks.js'
import { parseTimestamp } from './parsed-signature.js'

/** A signature of version 2: well-formed, of this time, not yet verified. */
export interface Version2Signature {
  /** True if the query holds the signature. */
  readonly presigned: boolean
  readonly accessKeyId: string
  /** Base64. */
  readonly signature: string
  /** The line of the string to sign that holds the time. */
  readonly date: string
}

/** True for a request whose query holds a signature of version 2. */
export function isVersion2Link({ query }: Pick<RequestHead, 'query'>): boolean {
  return query.has('AWSAccessKeyId')
}

/** True for the scheme `AWS` in an Authorization header. */
export function isVersion2Header(authorization: string | undefined): authorization is string {
  return authorization !== undefined && /^AWS(?: |$)/.test(authorization)
}

/**
 * Parses `AWS <access key id>:<signature>`.
 * @throws S3Error InvalidArgument, AccessDenied without a time, RequestTimeTooSkewed
 */
export function parseVersion2Header(authorization: string, head: RequestHead, now: number): Version2Signature {
  const given = authorization.slice(VERSION_2.length).trim()
  // Base64 has no colon; an access key id may have one.
  const colon = given.lastIndexOf(':')
  if (colon < 1 || colon === given.length - 1 || /\s/.test(given)) {
    throw new S3Error('InvalidArgument', {
      message: 'AWS authorization header is invalid. Expected AwsAccessKeyId:signature',
      fields: { ArgumentName: 'Authorization' },
    })
  }
  const branded = brandedHeader(head.headers, 'date')
  const text = branded?.value ?? head.headers.date
  const time = text === undefined ? undefined : parseTime(text.trim())
  if (time === undefined) {
    throw new S3Error('AccessDenied', { message: 'AWS authentication requires a valid Date or x-amz-date header' })
  }
  checkTime({ time, expires: undefined }, now)
  return {
    presigned: false,
    accessKeyId: given.slice(0, colon),
    signature: given.slice(colon + 1),
    date: branded === undefined ? (head.headers.date ?? '').trim() : '',
  }
}

const MAIL_DATE = /^(?:[A-Za-z]{3}, *)?\d{1,2} [A-Za-z]{3} \d{4} \d\d:\d\d:\d\d (?:GMT|UTC|Z|[+-]\d{4})$/

/**
 * Parses the formats of RFC 9110 and RFC 5322, and that of version 4. Returns undefined for others, and before 1970.
 */
function parseTime(text: string): number | undefined {
  const time = parseTimestamp(text) ?? (MAIL_DATE.test(text) ? Date.parse(text) : Number.NaN)
  return time >= 0 ? time : undefined
}

/** Maximum time until expiry, as for version 4, seconds. */
const MAX_AHEAD_S = 604_800
const OWN = ['AWSAccessKeyId', 'Signature', 'Expires']

/** Headers that are signed by their names and may stand in the query, as boto3 writes them. */
export function isCoveredHeaderParameter(name: string): boolean {
  const lower = name.toLowerCase()
  return lower.startsWith('x-amz-') || lower === 'content-type' || lower === 'content-md5'
}

/** Parameters that change the form of an answer alone. */
const HARMLESS = ['x-id', 'list-type', 'encoding-type', 'fetch-owner']

/**
 * Parses the parameters of a URL that is presigned with version 2. Version 2 leaves most of a request unsigned, so that
 * a URL may contain nothing that is neither covered nor harmless: its holder could change the rest.
 * https://docs.aws.amazon.com/AmazonS3/latest/API/RESTAuthentication.html#RESTAuthenticationQueryStringAuth
 * @throws S3Error AccessDenied, InvalidRequest, AuthorizationQueryParametersError
 */
export function parseVersion2Link(head: RequestHead, now: number): Version2Signature {
  const [accessKeyId = '', provided = '', expires = ''] = OWN.map((name) => only(head, name))
  checkExpires(expires, now)
  checkUse(head)
  return { presigned: true, accessKeyId, signature: provided, date: expires }
}

function only({ query }: RequestHead, name: string): string {
  const values = query.entries.filter(([found]) => found === name)
  if (values.length > 1) throw malformed(`The parameter ${name} is given more than once.`)
  const value = values[0]?.[1]
  if (value) return value
  throw new S3Error('AccessDenied', {
    message: 'Query-string authentication requires the Signature, Expires and AWSAccessKeyId parameters',
  })
}

function checkExpires(text: string, now: number): void {
  const end = /^\d{1,12}$/.test(text) ? Number(text) * 1000 : Number.NaN
  if (Number.isNaN(end)) {
    throw new S3Error('AccessDenied', {
      message: `Invalid date (should be seconds since epoch): ${text.slice(0, 80)}`,
    })
  }
  if (now >= end) {
    throw new S3Error('AccessDenied', {
      message: 'Request has expired',
      fields: { Expires: new Date(end).toISOString(), ServerTime: new Date(now).toISOString() },
    })
  }
  if (end - now > MAX_AHEAD_S * 1000)
    throw malformed(`Expires must be no more than ${MAX_AHEAD_S} seconds (seven days) ahead.`)
}

function checkUse({ method, resource, query }: RequestHead): void {
  const upload = resource === 'object' && (query.has('uploads') || query.has('uploadId'))
  if (!['GET', 'HEAD', 'PUT', 'DELETE'].includes(method) && !(method === 'POST' && upload)) {
    throw new S3Error('InvalidRequest', {
      message: `A URL presigned with signature version 2 cannot be used for this ${method}. Sign with AWS4-HMAC-SHA256.`,
    })
  }
  const names = query.entries.map(([name]) => name)
  const loose = names.find(
    (name) =>
      !OWN.includes(name) && !isCoveredParameter(name) && !isCoveredHeaderParameter(name) && !HARMLESS.includes(name),
  )
  if (loose !== undefined) {
    throw malformed(
      `Signature version 2 does not cover the parameter ${loose.slice(0, 80)}. Presign with AWS4-HMAC-SHA256.`,
    )
  }
}

/**
 * The signed text does not show where the value of an override ends: a file name with `&tagging` in it reads like one
 * more sub-resource. Beside overrides only the sub-resources of GetObject are accepted.
 */
export function refuseMixture(names: readonly string[]): void {
  if (!names.some(isOverride)) return
  const other = names.find(
    (name) => isCoveredParameter(name) && !isOverride(name) && name !== 'versionId' && name !== 'partNumber',
  )
  if (other === undefined) return
  throw new S3Error('InvalidArgument', {
    message: `The parameter ${other} cannot be combined with parameters response-... in a request signed with version 2.`,
    fields: { ArgumentName: other },
  })
}

function malformed(message: string): S3Error {
  return new S3Error('AuthorizationQueryParametersError', { message })
}

/**
 * The arithmetic of AWS Signature Version 2 for S3. Decides nothing about access. All texts have one character per
 * byte.
 * https://docs.aws.amazon.com/AmazonS3/latest/API/RESTAuthentication.html
 */

/** The value of the condition key `s3:signatureversion`, and the scheme of the Authorization header. */
export const VERSION_2 = 'AWS'

/**
 * Sub-resources that the signature covers: those of the page above, and every further one of S3. Clients know lists of
 * different lengths; a sub-resource outside all lists could be added to a signed request and change what it means.
 */
const SUBRESOURCES = new Set(
  [
    'abac accelerate acl analytics annotation attributes cors defaultObjectAcl delete encryption events',
    'intelligent-tiering inventory legal-hold lifecycle location logging metadataAnnotationTable',
    'metadataConfiguration metadataInventoryTable metadataJournalTable metadataTable metrics notification object-lock',
    'ownershipControls partNumber policy policyStatus publicAccessBlock renameObject replication requestPayment restore',
    'retention select select-type session storageClass tagging torrent uploadId uploads versionId versioning versions',
    'website',
  ].flatMap((line) => line.split(' ')),
)

const OVERRIDE = /^response-(content-(type|language|disposition|encoding)|cache-control|expires)$/

/** True for a query parameter that is part of the signed resource. */
export function isCoveredParameter(name: string): boolean {
  return SUBRESOURCES.has(name) || OVERRIDE.test(name)
}

/** True for `response-content-type` and the like. */
function isOverride(name: string): boolean {
  return OVERRIDE.test(name)
}

interface ToSign {
  readonly method: string
  readonly contentMd5: string
  readonly contentType: string
  /** The Date header, '' beside x-amz-date, or Expires of a presigned URL. */
  readonly date: string
  /** The headers of S3: lower-case names, values trimmed and joined with commas. Any order. */
  readonly headers: Iterable<readonly [name: string, value: string]>
  /** `/bucket/key`, encoded as sent, and the covered parameters. */
  readonly resource: string
}

export function stringToSign({ method, contentMd5, contentType, date, headers, resource }: ToSign): string {
  const lines = [...headers].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, value]) => `${name}:${value}\n`)
  return `${method}\n${contentMd5}\n${contentType}\n${date}\n${lines.join('')}${resource}`
}

/** Base64 of the HMAC-SHA1. */
export function signature(secretAccessKey: string, toSign: string): string {
  return createHmac('sha1', secretAccessKey).update(toSign, 'latin1').digest('base64')
}

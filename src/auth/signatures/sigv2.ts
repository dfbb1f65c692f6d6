import { createHmac } from 'node:crypto'

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
export function isOverride(name: string): boolean {
  return OVERRIDE.test(name)
}

export interface ToSign {
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

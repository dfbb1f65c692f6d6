import type { IncomingHttpHeaders } from 'node:http'
import type { Caller } from '../../auth/caller.js'
import {
  checksumAlgorithms,
  checksumHeader,
  createChecksum,
  prepareChecksum,
} from '../../common/checksums/checksums.js'
import type { RequestHead } from '../s3-request.js'

/** Parameters of the signature, the transfer or the SDK, which are no input of the operation. */
const NOT_HEADERS =
  /^x-amz-(algorithm|credential|date|expires|signedheaders|signature|security-token|content-sha256|trailer|decoded-content-length|sdk-checksum-algorithm)$/

/** Further headers that presigners of signature version 2 move: it signs them by name. */
const CONTENT = /^content-(?:md5|type)$/

/**
 * Adds the headers that a presigner moved into the query to the headers of a presigned request. SDKs move x-amz-meta-*,
 * x-amz-acl and others, and S3 honours them. A header of the request, which is signed too, takes precedence.
 */
export async function hoistedHeaders(
  head: RequestHead,
  { signatureVersion }: Pick<Caller, 'signatureVersion'>,
): Promise<IncomingHttpHeaders> {
  const hoisted = new Map<string, string>()
  for (const [name, value] of head.query.entries) {
    const lower = name.toLowerCase()
    if (!lower.startsWith('x-amz-') && !(signatureVersion === 'AWS' && CONTENT.test(lower))) continue
    if (NOT_HEADERS.test(lower) || (await isOfEmptyBody(lower, value))) continue
    // Header values are latin-1 strings of UTF-8 bytes.
    const text = Buffer.from(value).toString('latin1')
    const before = hoisted.get(lower)
    hoisted.set(lower, before === undefined ? text : `${before}, ${text}`)
  }
  return { ...Object.fromEntries(hoisted), ...head.headers }
}

/**
 * True for the checksum of an empty body. SDKs presign it because they do not know the body, and it would make the
 * server refuse every other body: https://github.com/aws/aws-sdk-js-v3/issues/6994
 */
async function isOfEmptyBody(name: string, value: string): Promise<boolean> {
  const algorithm = checksumAlgorithms.find((known) => checksumHeader(known) === name)
  if (algorithm === undefined) return false
  await prepareChecksum(algorithm)
  return createChecksum(algorithm).digest() === value
}

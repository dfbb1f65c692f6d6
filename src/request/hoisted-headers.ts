import type { IncomingHttpHeaders } from 'node:http'
import { checksumAlgorithms, checksumHeader, createChecksum } from '../common/checksums.js'
import type { RequestHead } from './s3-request.js'

/** Parameters that belong to the signature, the transfer or the SDK, not to the operation. */
const NOT_HEADERS =
  /^x-amz-(algorithm|credential|date|expires|signedheaders|signature|security-token|content-sha256|trailer|decoded-content-length|sdk-checksum-algorithm)$/

/**
 * The headers of a presigned request with those that the presigner moved into the query: SDKs put x-amz-meta-*, x-amz-acl and their like there, and S3 honours
 * them. One that was sent as a header, which is signed too, wins.
 */
export function hoistedHeaders(head: RequestHead): IncomingHttpHeaders {
  const hoisted = new Map<string, string>()
  for (const [name, value] of head.query.entries) {
    const lower = name.toLowerCase()
    if (!lower.startsWith('x-amz-') || NOT_HEADERS.test(lower) || isOfEmptyBody(lower, value)) continue
    // A header carries text as the bytes of its UTF-8.
    const text = Buffer.from(value).toString('latin1')
    const before = hoisted.get(lower)
    hoisted.set(lower, before === undefined ? text : `${before}, ${text}`)
  }
  return { ...Object.fromEntries(hoisted), ...head.headers }
}

/** SDKs presign a checksum of the body that they do not have, https://github.com/aws/aws-sdk-js-v3/issues/6994: every real body would be refused. */
function isOfEmptyBody(name: string, value: string): boolean {
  const algorithm = checksumAlgorithms.find((known) => checksumHeader(known) === name)
  return algorithm !== undefined && createChecksum(algorithm).digest() === value
}

import type { IncomingHttpHeaders } from 'node:http'
import type { RequestHead } from './s3-request.js'

/** Parameters that belong to the signature or the SDK, not to the operation. */
const NOT_HEADERS =
  /^x-(amz|cloud)-(algorithm|credential|date|expires|signedheaders|signature|security-token|content-sha256)$/i

/**
 * The headers of a presigned request with those that the presigner moved into the query: SDKs put x-amz-meta-*, x-amz-acl and their like there, and S3 honours
 * them. Checksums are left out: SDKs presign the checksum of an empty body (aws-sdk-js-v3 issue 6994), and every real body would be refused.
 */
export function hoistedHeaders(head: RequestHead): IncomingHttpHeaders {
  const headers = { ...head.headers }
  for (const [name, value] of head.query.entries) {
    const lower = name.toLowerCase()
    if (!lower.startsWith('x-amz-') || NOT_HEADERS.test(lower) || /^x-amz-(sdk-)?checksum-/.test(lower)) continue
    headers[lower] ??= value
  }
  return headers
}

import type { IncomingHttpHeaders } from 'node:http'
import { hasUnknownCoding } from '../../common/broken-request.js'
import { S3Error } from '../../common/errors/s3-error.js'
import { brandedHeader } from '../addressing/branded-header.js'

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

/** Length of the body including framing, bytes; undefined with Transfer-Encoding: chunked. */
export function wireLength(headers: IncomingHttpHeaders): number | undefined {
  return headers['transfer-encoding'] === undefined ? Number(headers['content-length'] ?? 0) : undefined
}

/**
 * Reads x-amz-decoded-content-length: bytes of an aws-chunked body without its framing. With an unsigned trailer, SDKs
 * omit the header if they do not know the length.
 * @throws S3Error MissingContentLength if it is required and absent, InvalidArgument if it is not a length
 */
export function decodedLength(
  headers: IncomingHttpHeaders,
  { required = false }: { readonly required?: boolean } = {},
): number | undefined {
  const declared = brandedHeader(headers, 'decoded-content-length')
  if (declared === undefined) {
    if (!required) return undefined
    throw new S3Error('MissingContentLength', {
      message: 'A body in signed chunks requires x-amz-decoded-content-length, its length without framing.',
    })
  }
  const length = /^\d{1,16}$/.test(declared.value) ? Number(declared.value) : Number.NaN
  if (!Number.isSafeInteger(length)) {
    throw new S3Error('InvalidArgument', {
      message: `${declared.name} must be a number of bytes.`,
      fields: { ArgumentName: declared.name, ArgumentValue: declared.value.slice(0, 80) },
    })
  }
  return length
}

import type { IncomingHttpHeaders } from 'node:http'
import { S3Error } from '../errors/s3-error.js'
import { brandedHeader } from './branded-header.js'

/** Tells whether bytes may follow the head: RFC 9112, section 6.3. Node has already refused a Content-Length that is no number. */
export function declaresBody(headers: IncomingHttpHeaders): boolean {
  if (headers['transfer-encoding'] !== undefined) return true
  return headers['content-length'] !== undefined && Number(headers['content-length']) > 0
}

/**
 * Node takes `gzip, chunked` and hands on what is under the chunks: it would be stored as if it were the object.
 * @throws S3Error NotImplemented for another transfer coding than chunked, as RFC 9112 section 6.1 asks
 */
export function refuseTransferCodings(headers: IncomingHttpHeaders): void {
  const codings = headers['transfer-encoding']
  if (codings === undefined || codings.trim().toLowerCase() === 'chunked') return
  throw new S3Error('NotImplemented', { message: 'The only transfer coding that is implemented is chunked.' })
}

/** Bytes that will follow the head, framing included; undefined under Transfer-Encoding: chunked. */
export function wireLength(headers: IncomingHttpHeaders): number | undefined {
  return headers['transfer-encoding'] === undefined ? Number(headers['content-length'] ?? 0) : undefined
}

/**
 * x-amz-decoded-content-length: bytes of an aws-chunked body without its framing. SDKs leave it out with an unsigned trailer if they do not know.
 * @throws S3Error MissingContentLength if it is required and absent, InvalidArgument if it is no length
 */
export function decodedLength(headers: IncomingHttpHeaders, required: boolean): number | undefined {
  const declared = brandedHeader(headers, 'decoded-content-length')
  if (declared === undefined) {
    if (!required) return undefined
    throw new S3Error('MissingContentLength', {
      message: 'A body in signed chunks needs its length without framing in x-amz-decoded-content-length.',
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

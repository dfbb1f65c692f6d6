import { S3Error } from '../../common/errors/s3-error.js'
import { ALGORITHM, UNSIGNED_PAYLOAD } from '../../common/sigv4.js'
import { brandedHeader } from '../../request/addressing/branded-header.js'
import type { RequestHead } from '../../request/s3-request.js'
import type { ChunkSigning, PayloadMode } from '../caller.js'

const SHA256_HEX = /^[0-9a-f]{64}$/i

/**
 * Determines how to read the body from the value of x-amz-content-sha256.
 * https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html
 * @param signing undefined for an unsigned request and for version 2, which cannot have signed chunks
 * @throws S3Error InvalidArgument; NotImplemented for other STREAMING-... forms, whose framing must never be stored as
 *   data; AccessDenied for signed chunks without `signing`
 */
export function payloadMode(value: string, signing: ChunkSigning | undefined): PayloadMode {
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
  if (SHA256_HEX.test(value)) return { kind: 'signed', sha256: value.toLowerCase() }
  if (value.startsWith('STREAMING-')) {
    throw new S3Error('NotImplemented', { message: `The payload form ${value.slice(0, 80)} is not supported.` })
  }
  throw new S3Error('InvalidArgument', {
    message:
      'x-amz-content-sha256 must be the SHA-256 of the body in hex, UNSIGNED-PAYLOAD, or one of the STREAMING forms that S3 defines.',
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

import { UNSIGNED_PAYLOAD } from '../common/sigv4.js'
import { S3Error } from '../errors/s3-error.js'
import { brandedHeader } from '../request/branded-header.js'
import type { RequestHead } from '../request/s3-request.js'
import type { ChunkSigning, PayloadMode } from './caller.js'

const SHA256_HEX = /^[0-9a-f]{64}$/i

/**
 * How to read the body, from the value of x-amz-content-sha256.
 * https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html
 * @param signing undefined for a request without a signature, which cannot have signed chunks
 * @throws S3Error InvalidArgument, or NotImplemented for another STREAMING-... form: its framing must never be stored as data
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
  throw new S3Error('AccessDenied', { message: `A body in the form ${value} belongs to a signed request.` })
}

/** How to read the body of a request that carries no signature. What it says of its body is checked all the same. */
export function anonymousPayload(head: RequestHead): PayloadMode {
  const declared = brandedHeader(head.headers, 'content-sha256')
  return declared === undefined ? { kind: 'unsigned' } : payloadMode(declared.value, undefined)
}

import type { IncomingMessage } from 'node:http'
import type { ReadWholeBody } from '../../auth/caller.js'
import { S3Error } from '../../common/errors/s3-error.js'
import type { RequestHead } from '../s3-request.js'
import { wireLength } from './declared-length.js'
import { type BeforeBody, openIncoming } from './open-body.js'
import type { Patience } from './pace.js'

const MiB = 1024 * 1024

export interface ReadWholeOptions {
  readonly patience: Patience
  /** Largest body, bytes; default 1 MiB. */
  readonly maxBytes?: number
  readonly beforeBody?: BeforeBody
}

/**
 * Returns a function that reads a complete body, for a signature that covers an undeclared hash. The bytes are not
 * authenticated: only the authenticator may use them.
 */
export function readWhole(incoming: IncomingMessage, head: RequestHead, options: ReadWholeOptions): ReadWholeBody {
  const { patience, maxBytes = MiB, beforeBody } = options
  const check = (size: number): void => {
    if (size <= maxBytes) return
    throw new S3Error('MissingSecurityHeader', {
      message: `A signed request with a body of more than ${maxBytes} bytes requires x-amz-content-sha256: the hash of the body, or UNSIGNED-PAYLOAD.`,
      fields: { MissingHeaderName: 'x-amz-content-sha256' },
    })
  }
  return async () => {
    check(wireLength(head.headers) ?? 0)
    const source = openIncoming(incoming, patience, beforeBody)
    try {
      const pieces: Buffer[] = []
      let size = 0
      for (let bytes = await source.next(); bytes !== undefined; bytes = await source.next()) {
        size += bytes.length
        check(size)
        pieces.push(bytes)
      }
      return Buffer.concat(pieces, size)
    } finally {
      source.close()
    }
  }
}

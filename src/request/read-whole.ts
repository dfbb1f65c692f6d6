import type { IncomingMessage } from 'node:http'
import type { ReadWholeBody } from '../auth/caller.js'
import { S3Error } from '../errors/s3-error.js'
import { IncomingSource } from './body-source.js'
import { wireLength } from './declared-length.js'
import type { BeforeBody } from './open-body.js'
import type { RequestHead } from './s3-request.js'

const MiB = 1024 * 1024

export interface ReadWholeOptions {
  readonly idleMs: number
  /** Bytes; default 1 MiB. */
  readonly maxBytes?: number
  readonly beforeBody?: BeforeBody
}

/** Reads a body whole for a signature that covers a hash nobody sent. The bytes are nobody's yet: they may go to the authenticator only. */
export function readWhole(incoming: IncomingMessage, head: RequestHead, options: ReadWholeOptions): ReadWholeBody {
  const { idleMs, maxBytes = MiB, beforeBody } = options
  const check = (size: number): void => {
    if (size <= maxBytes) return
    throw new S3Error('MissingSecurityHeader', {
      message: `A signed request with a body of more than ${maxBytes} bytes needs x-amz-content-sha256: the hash of the body, or UNSIGNED-PAYLOAD.`,
      fields: { MissingHeaderName: 'x-amz-content-sha256' },
    })
  }
  return async () => {
    check(wireLength(head.headers) ?? 0)
    beforeBody?.()
    const source = new IncomingSource(incoming, idleMs)
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

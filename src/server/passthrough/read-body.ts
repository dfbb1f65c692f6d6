import type { IncomingMessage } from 'node:http'
import { S3Error } from '../../common/errors/s3-error.js'
import { type BeforeBody, openIncoming } from '../../request/body/open-body.js'
import type { Patience } from '../../request/body/pace.js'

/** Reason why a body was not read. */
export type BodyFault = 'too large' | 'too slow' | 'too many' | 'broken off' | 'read already'

const FAULTS: Readonly<Record<string, BodyFault>> = {
  RequestTimeout: 'too slow',
  IncompleteBody: 'broken off',
  SlowDown: 'too many',
  InvalidRequest: 'read already',
}

/**
 * Reads the complete body of a request.
 * @param maxBytes largest body that is read
 */
export async function readBody(
  incoming: IncomingMessage,
  maxBytes: number,
  patience: Patience,
  beforeBody: BeforeBody,
): Promise<Buffer | BodyFault> {
  if (Number(incoming.headers['content-length'] ?? 0) > maxBytes) return 'too large'
  try {
    const source = openIncoming(incoming, patience, beforeBody)
    try {
      const pieces: Buffer[] = []
      let size = 0
      for (let bytes = await source.next(); bytes !== undefined; bytes = await source.next()) {
        size += bytes.length
        if (size > maxBytes) return 'too large'
        pieces.push(bytes)
      }
      return Buffer.concat(pieces, size)
    } finally {
      source.close()
    }
  } catch (error) {
    const fault = error instanceof S3Error ? FAULTS[error.code] : undefined
    if (fault === undefined) throw error
    return fault
  }
}

import type { IncomingMessage, ServerResponse } from 'node:http'
import { S3Error, slowDown } from '../../../common/errors/s3-error.js'
import { sendContinue } from '../../../common/expectation.js'
import { Quota, type QuotaBounds } from '../../../common/quota.js'
import type { ReadWholeBody } from '../../api/identity.js'
import type { RequestHead } from '../../api/request.js'
import type { BodyLimits } from './body-source.js'
import { wireLength } from './declared-digests.js'
import { type BeforeBody, openIncoming } from './open-body.js'

/** Limits the request bodies that are read at the same time, in total and per client. */
export class Bodies {
  readonly #quota: Quota

  constructor(bounds: QuotaBounds) {
    this.#quota = new Quota(bounds)
  }

  /** Bodies that are being read. */
  get held(): number {
    return this.#quota.held
  }

  /**
   * Takes a slot for a body, then tells a client that waits for it to send the body.
   * @param client see `clientOf`
   * @returns an idempotent function that releases the slot
   * @throws S3Error SlowDown
   */
  takeIn(client: string, outgoing: ServerResponse): () => void {
    const leave = this.enter(client)
    sendContinue(outgoing)
    return leave
  }

  /**
   * Takes a slot for a body.
   * @param client see `clientOf`
   * @returns an idempotent function that releases the slot
   * @throws S3Error SlowDown
   */
  enter(client: string): () => void {
    if (!this.#quota.take(client, 1)) {
      throw slowDown(
        'The server is reading too many request bodies of this client or of all clients: send fewer at the same time.',
      )
    }
    let inside = true
    return () => {
      if (inside) this.#quota.give(client, 1)
      inside = false
    }
  }
}

const MiB = 1024 * 1024

interface ReadWholeOptions {
  readonly bodyLimits: BodyLimits
  /** Largest body, bytes; default 1 MiB. */
  readonly maxBytes?: number
  readonly beforeBody?: BeforeBody
}

/**
 * Returns a function that reads a complete body, for a signature that covers an undeclared hash. The bytes are not
 * authenticated: only the authenticator may use them.
 */
export function readWhole(incoming: IncomingMessage, head: RequestHead, options: ReadWholeOptions): ReadWholeBody {
  const { bodyLimits, maxBytes = MiB, beforeBody } = options
  const check = (size: number): void => {
    if (size <= maxBytes) return
    throw new S3Error('MissingSecurityHeader', {
      message: `A signed request with a body of more than ${maxBytes} bytes requires x-amz-content-sha256: the hash of the body, or UNSIGNED-PAYLOAD.`,
      fields: { MissingHeaderName: 'x-amz-content-sha256' },
    })
  }
  return async () => {
    check(wireLength(head.headers) ?? 0)
    const source = openIncoming(incoming, bodyLimits, beforeBody)
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

import { slowDown } from '../../common/errors/slow-down.js'
import { Quota, type QuotaBounds } from '../../common/quota.js'

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

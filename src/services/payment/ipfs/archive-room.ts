import type { PaymentLimits } from '../limits.js'

/**
 * What an archive may grow to. A directory that repeats itself at many levels has few blocks, and more paths than
 * anyone can read: an archive that names each of them would have no end.
 */
export class ArchiveRoom {
  readonly #bounds: Pick<PaymentLimits, 'maxArchiveEntries' | 'maxArchiveBytes'>
  #entries = 0
  #bytes = 0

  constructor(bounds: Pick<PaymentLimits, 'maxArchiveEntries' | 'maxArchiveBytes'>) {
    this.#bounds = bounds
  }

  /** Call it for each entry before it is sent. Throws when there are too many. */
  entry(): void {
    if (++this.#entries > this.#bounds.maxArchiveEntries) throw new Error('The archive has too many entries.')
  }

  /** Passes the bytes of the archive on; rejects with the first one too many. */
  async *passing(chunks: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
    for await (const chunk of chunks) {
      this.#bytes += chunk.length
      if (this.#bytes > this.#bounds.maxArchiveBytes) throw new Error('The archive has too many bytes.')
      yield chunk
    }
  }

  /** Like `passing`, for an archive of which each chunk is an entry. */
  async *passingEntries(chunks: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
    for await (const chunk of this.passing(chunks)) {
      this.entry()
      yield chunk
    }
  }
}

import { PaymentError } from '../errors.js'

/** While a content is packed, its blocks are on the disk twice. */
const COPIES = 2

type Counted = (content: AsyncIterable<Uint8Array>) => AsyncIterable<Uint8Array>

/** Bounds what contents take on the disk: those that are kept, and those that arrive. */
export class Room {
  readonly #most: number
  #kept: number
  #arriving = 0

  /** @param kept bytes of the contents that are there already */
  constructor(most: number, kept: number) {
    this.#most = most
    this.#kept = kept
  }

  /** Counts a content that is kept from now on, bytes; below 0 for one that is removed. */
  keep(bytes: number): void {
    this.#kept += bytes
  }

  /**
   * Runs `job`; a content that it counts fails with PaymentError `full` when there is no room for more of it.
   * @param makeRoom removes a content that is kept; false when none can go
   */
  async run<T>(job: (counted: Counted) => Promise<T>, makeRoom: () => Promise<boolean>): Promise<T> {
    let taken = 0
    const count = async (bytes: number): Promise<void> => {
      taken += COPIES * bytes
      this.#arriving += COPIES * bytes
      while (this.#kept + this.#arriving > this.#most) {
        if (!(await makeRoom())) throw new PaymentError('full', 'the service has no room for it')
      }
    }
    try {
      return await job(async function* (content) {
        for await (const chunk of content) {
          await count(chunk.length)
          yield chunk
        }
      })
    } finally {
      this.#arriving -= taken
    }
  }
}

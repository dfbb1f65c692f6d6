import { setTimeout as sleep } from 'node:timers/promises'
import { type Rate, TokenBuckets } from '../../../common/client-rate.js'

/** Blocks between two looks at the rate. */
const LOOKED_AT = 64

const ALL = ''

/**
 * Bounds the blocks that are read for anyone: each is looked up and hashed, whatever its size, so a content of many
 * small ones costs seconds of CPU time. Blocks of common sizes stay below the rate.
 */
export class BlockRate {
  readonly #clients: TokenBuckets
  readonly #all: TokenBuckets
  readonly #pause: (ms: number) => Promise<unknown>

  /**
   * @param pause waits for ms
   * @param clock monotonic, ms
   */
  constructor(
    rates: { readonly perClient: Rate; readonly total: Rate },
    pause: (ms: number) => Promise<unknown> = sleep,
    clock: () => number = () => performance.now(),
  ) {
    this.#clients = new TokenBuckets(rates.perClient, clock)
    this.#all = new TokenBuckets(rates.total, clock)
    this.#pause = pause
  }

  /** Passes on the blocks of a body at the rate. */
  async *paced(client: string, blocks: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
    let read = 0
    for await (const block of blocks) {
      yield block
      if (++read % LOOKED_AT !== 0) continue
      const seconds = Math.max(this.#clients.wait(client, LOOKED_AT), this.#all.wait(ALL, LOOKED_AT))
      this.#clients.take(client, LOOKED_AT)
      this.#all.take(ALL, LOOKED_AT)
      if (seconds > 0) await this.#pause(seconds * 1000)
    }
  }
}

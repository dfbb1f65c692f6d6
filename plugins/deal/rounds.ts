import { setTimeout as sleep } from 'node:timers/promises'
import type { PluginHost } from '../../src/registry/plugin.js'
import { type Claim, takeClaim } from '../../src/state/claim.js'
import type { DealParts } from './parts.js'

export interface RoundsOptions {
  /** Of servers on one state the one that has it does the round. */
  readonly claim: string
  /** Between two rounds. */
  readonly seconds: number
  /** Whether the first round is not waited for. */
  readonly atOnce: boolean
  /** What is logged when a round fails. The next one begins all the same. */
  readonly failure: string
  /** Does a round; it is to end when the signal fires or the claim is no longer held. */
  round(claim: Claim, signal: AbortSignal): Promise<void>
}

/**
 * To be awaited when one thing of a round has failed: throws where that is no wonder, because the gateway or the records cannot be reached; the round is better begun anew. Otherwise
 * it goes on, for what is wrong with one thing must not keep it from the others for ever.
 */
export async function requireHealth({ host, copies }: Pick<DealParts, 'host' | 'copies'>): Promise<void> {
  await host.own.gateway.ready()
  await copies.get('', '')
}

/** Work of the server's own that comes again and again. */
export class Rounds {
  readonly #host: PluginHost
  readonly #options: RoundsOptions
  readonly #ending = new AbortController()
  #running: Promise<void> = Promise.resolve()

  constructor(host: PluginHost, options: RoundsOptions) {
    this.#host = host
    this.#options = options
  }

  start(): void {
    this.#running = this.#run(this.#ending.signal)
  }

  /** Ends the round that is under way, between two things of it. */
  async stop(): Promise<void> {
    this.#ending.abort()
    await this.#running
  }

  async #run(signal: AbortSignal): Promise<void> {
    if (!this.#options.atOnce) await this.#pause(signal)
    while (!signal.aborted) {
      try {
        await this.#round(signal)
      } catch (err) {
        if (!signal.aborted) this.#host.log.warn({ err }, this.#options.failure)
      }
      await this.#pause(signal)
    }
  }

  async #round(signal: AbortSignal): Promise<void> {
    const claim = await takeClaim(this.#host.state, this.#options.claim, this.#host.log)
    if (!claim) return
    try {
      await this.#options.round(claim, signal)
    } finally {
      await claim.release()
    }
  }

  /** Servers that were started together do not go together. */
  async #pause(signal: AbortSignal): Promise<void> {
    const ms = this.#options.seconds * 1000 * (0.9 + Math.random() * 0.2)
    await sleep(ms, undefined, { signal, ref: false }).catch(() => {})
  }
}

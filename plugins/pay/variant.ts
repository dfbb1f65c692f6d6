import type { PayParts } from './parts.js'
import { dataOf, repeatable } from './wire/answer.js'
import { wireParams } from './wire/params.js'

export type Variant = 'a' | 'b'

/** How long the answer is used, ms. */
const FRESH_MS = 60_000

/** Finds out the variant of the service: the two name their system parameters differently. */
export class VariantProbe {
  readonly #parts: PayParts
  #known: { readonly variant: Promise<Variant>; readonly until: number } | undefined

  constructor(parts: PayParts) {
    this.#parts = parts
  }

  /** Throws S3Error Upstream*, NotImplemented. */
  get(): Promise<Variant> {
    const { options, host } = this.#parts
    if (options.variant !== 'auto') return Promise.resolve(options.variant)
    const now = host.now()
    if (this.#known && now < this.#known.until) return this.#known.variant
    const variant = this.#ask().catch((error) => {
      if (this.#known?.variant === variant) this.#known = undefined
      throw repeatable(error)
    })
    this.#known = { variant, until: now + FRESH_MS }
    return variant
  }

  async #ask(): Promise<Variant> {
    const answer = await this.#parts.client.send({ method: 'GET', path: ['api', 'v1', 'common', 'system', 'params'] })
    return dataOf(answer, wireParams).variant
  }
}

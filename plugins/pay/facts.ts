import { lenient, type PluginHost, parseAmount, repeatable, type ServiceClient } from 'dealgate'
import { z } from 'zod'
import type { PayOptions } from './options.js'
import { dataOf, type WireParams, wireParams } from './wire.js'

export type Variant = WireParams['variant']

/** How long an answer is used, ms. */
const FRESH_MS = 60_000

const wireStatistics = z.object({ average_price_per_GB_per_year: lenient.text })

interface Service {
  readonly options: Pick<PayOptions, 'variant'>
  readonly host: Pick<PluginHost, 'now'>
  readonly client: ServiceClient
}

/** What the service says of itself, up to a minute old. Methods throw S3Error Upstream* and NotImplemented. */
export class ServiceFacts {
  readonly #service: Service
  readonly #params: () => Promise<WireParams>
  readonly #price: () => Promise<bigint | undefined>

  constructor(service: Service) {
    this.#service = service
    this.#params = this.#cached(['api', 'v1', 'common', 'system', 'params'], wireParams)
    this.#price = this.#cached(
      ['stats', 'storage'],
      wireStatistics.transform((told) => attofil(told.average_price_per_GB_per_year)),
    )
  }

  /** The two variants name their system parameters differently. */
  async variant(): Promise<Variant> {
    const { variant } = this.#service.options
    return variant === 'auto' ? (await this.#params()).variant : variant
  }

  /** Clients lock this many times the expected price. */
  async factor(): Promise<number> {
    return Math.max(1, (await this.#params()).pay_multiply_factor)
  }

  /** Average price, attofil for 10^9 bytes and a year; undefined where the service does not tell it in fil. */
  pricePerYear(): Promise<bigint | undefined> {
    return this.#price()
  }

  #cached<T>(path: readonly string[], schema: z.ZodType<T>): () => Promise<T> {
    let known: { readonly value: Promise<T>; readonly until: number } | undefined
    return () => {
      const now = this.#service.host.now()
      if (known && now < known.until) return known.value
      const value = this.#ask(path, schema).catch((error) => {
        if (known?.value === value) known = undefined
        throw repeatable(error)
      })
      known = { value, until: now + FRESH_MS }
      return value
    }
  }

  async #ask<T>(path: readonly string[], schema: z.ZodType<T>): Promise<T> {
    return dataOf(await this.#service.client.send({ method: 'GET', path }), schema)
  }
}

function attofil(told: string): bigint | undefined {
  const [, digits = ''] = /^\s*([\d.eE+-]+)\s+FIL\s*$/i.exec(told) ?? []
  return parseAmount(digits)
}

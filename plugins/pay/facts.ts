import { priceStatistics } from 'dealgate/paid'
import { type PluginHost, parseAmount, repeatable, type ServiceClient } from 'dealgate/plugin'
import type { z } from 'zod'
import { systemConfig } from './documents.js'
import type { PayOptions } from './options.js'
import { apiPath, service } from './service.js'

/** `signedIn`: variant A of the interface, with sign-in of wallets; `open`: variant B, without. */
export type Mode = 'signedIn' | 'open'

const MODES = { a: 'signedIn', A: 'signedIn', b: 'open', B: 'open' } as const

/** How long an answer is used, ms. */
const FRESH_MS = 60_000

interface FactDeps {
  readonly options: Pick<PayOptions, 'variant'>
  readonly host: Pick<PluginHost, 'now'>
  readonly client: ServiceClient
}

/** What the service says of itself, up to a minute old. Methods throw S3Error Upstream* and NotImplemented. */
export class ServiceFacts {
  readonly #deps: FactDeps
  readonly #params: () => Promise<z.output<typeof systemConfig.shown>>
  /** Average price, attofil for 10^9 bytes and a year; undefined where the service does not state it in fil. */
  readonly pricePerYear: () => Promise<bigint | undefined>

  constructor(deps: FactDeps) {
    this.#deps = deps
    this.#params = this.#cached(apiPath('common', 'system', 'params'), systemConfig.read)
    this.pricePerYear = this.#cached(
      ['stats', 'storage'],
      priceStatistics.read.transform((prices) => attofil(prices.AveragePricePerGBPerYear?.Text ?? '')),
    )
  }

  /** The two variants name their system parameters differently. */
  async mode(): Promise<Mode> {
    const { variant } = this.#deps.options
    return MODES[variant === 'auto' ? (await this.#params()).Variant : variant]
  }

  /** Name of the chain environment, which sign-ins and orders to pay name; '' if the service does not tell it. */
  async network(): Promise<string> {
    return (await this.#params()).ChainName ?? ''
  }

  /** Clients lock this many times the expected price. */
  async factor(): Promise<number> {
    return Math.max(1, (await this.#params()).PayMultiplyFactor)
  }

  #cached<T>(path: readonly string[], schema: z.ZodType<T>): () => Promise<T> {
    let known: { readonly value: Promise<T>; readonly until: number } | undefined
    return () => {
      const now = this.#deps.host.now()
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
    return service.dataOf(await this.#deps.client.send({ method: 'GET', path }), schema)
  }
}

function attofil(stated: string): bigint | undefined {
  const [, digits = ''] = /^\s*([\d.eE+-]+)\s+FIL\s*$/i.exec(stated) ?? []
  return parseAmount(digits)
}

import type { Context } from '../../src/context.js'
import type { PluginHost } from '../../src/registry/plugin.js'
import { parseAmount } from './amounts.js'
import { configurationOf } from './configuration.js'
import { type DealOptions, statedOf } from './options.js'
import { resolveTerms } from './resolve-terms.js'
import { type Caps, Spending } from './spending.js'
import type { DealTerms, StatedTerms } from './terms.js'

/** What the operations, jobs and storage classes of this plugin have in common. Everything but the options is there once the plugin was started. */
export class DealParts {
  readonly options: DealOptions
  #host: PluginHost | undefined
  #spending: Spending | undefined

  constructor(options: DealOptions) {
    this.options = options
  }

  start(host: PluginHost): void {
    this.#host = host
    this.#spending = new Spending(host.state, host.now)
  }

  get host(): PluginHost {
    return started(this.#host)
  }

  get spending(): Spending {
    return started(this.#spending)
  }

  /** Terms for a deal in this bucket. Throws DealTermsRequired, DealTermsInvalid. */
  async termsFor(
    context: Pick<Context, 'settings'>,
    bucket: string,
    stated: {
      readonly request?: StatedTerms
      readonly metadata?: Readonly<Record<string, string>>
      readonly storageClass?: string
    },
  ): Promise<DealTerms> {
    const configuration = await configurationOf(context, bucket)
    return resolveTerms({ ...stated, configuration, defaults: statedOf(this.options.terms) })
  }

  /** What deals may cost per day, those of this bucket and all together. */
  async capsFor(context: Pick<Context, 'settings'>, bucket: string): Promise<Caps> {
    const configuration = await configurationOf(context, bucket)
    return { all: amount(this.options.maxSpendPerDay), bucket: amount(configuration?.MaxSpendPerDay) }
  }
}

function amount(text: string | undefined): bigint | undefined {
  return text === undefined ? undefined : parseAmount(text)
}

function started<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('the plugin deal has not been started')
  return value
}

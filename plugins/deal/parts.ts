import type { Context } from '../../src/context.js'
import type { Jobs } from '../../src/jobs/job.js'
import type { PluginHost } from '../../src/registry/plugin.js'
import { parseAmount } from './amounts.js'
import { LocalCopies } from './archive/local-copies.js'
import { configurationOf } from './configuration.js'
import { type DealOptions, statedOf } from './options.js'
import { Attempts } from './records/attempts.js'
import { DealRecords } from './records/deal-records.js'
import { resolveTerms, statedBy, type TermSources } from './resolve-terms.js'
import { type Caps, Spending } from './spending.js'
import type { DealTerms, StatedTerms } from './terms.js'

type Stated = Pick<TermSources, 'request' | 'metadata' | 'storageClass'>

/** What the operations, jobs and storage classes of this plugin have in common. Everything but the options is there once the plugin was started. */
export class DealParts {
  readonly options: DealOptions
  #host: PluginHost | undefined
  #spending: Spending | undefined
  #deals: DealRecords | undefined
  #attempts: Attempts | undefined
  #copies: LocalCopies | undefined

  constructor(options: DealOptions) {
    this.options = options
  }

  start(host: PluginHost): void {
    this.#host = host
    this.#spending = new Spending(host.state, host.now)
    this.#deals = new DealRecords(host.state)
    this.#attempts = new Attempts(host.state)
    this.#copies = new LocalCopies(host.state)
  }

  get host(): PluginHost {
    return started(this.#host)
  }

  get spending(): Spending {
    return started(this.#spending)
  }

  get deals(): DealRecords {
    return started(this.#deals)
  }

  get attempts(): Attempts {
    return started(this.#attempts)
  }

  get copies(): LocalCopies {
    return started(this.#copies)
  }

  get jobs(): Jobs {
    return this.host.own.jobs
  }

  /** Terms for a deal in this bucket. Throws DealTermsRequired, DealTermsInvalid. */
  async termsFor(context: Pick<Context, 'settings'>, bucket: string, stated: Stated): Promise<DealTerms> {
    return resolveTerms(await this.#sources(context, bucket, stated))
  }

  /** The same, unread and as far as they are stated. Throws DealTermsInvalid. */
  async statedFor(context: Pick<Context, 'settings'>, bucket: string, stated: Stated): Promise<StatedTerms> {
    return statedBy(await this.#sources(context, bucket, stated))
  }

  async #sources(context: Pick<Context, 'settings'>, bucket: string, stated: Stated): Promise<TermSources> {
    const configuration = await configurationOf(context, bucket)
    return { ...stated, configuration, defaults: statedOf(this.options.terms) }
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

import { Attempts, openFilLedger, type PluginHost, S3Error, ServiceClient, type SpendLedger } from 'dealgate'
import { ServiceFacts, type Variant } from './facts.js'
import type { PayOptions } from './options.js'
import { MadeUploads } from './upload/made-uploads.js'
import { Wallets } from './wallets.js'

/** Shared by the operations and jobs of this plugin. */
export class PayParts {
  readonly options: PayOptions
  readonly host: PluginHost
  readonly wallets: Wallets
  readonly attempts: Attempts
  readonly facts: ServiceFacts
  readonly made: MadeUploads
  readonly ledger: SpendLedger
  #client: ServiceClient | undefined

  /** @param host need not have started yet */
  constructor(options: PayOptions, host: PluginHost) {
    this.options = options
    this.host = host
    this.wallets = new Wallets(host)
    this.attempts = new Attempts(() => host.now())
    this.facts = new ServiceFacts(this)
    this.made = new MadeUploads(host)
    this.ledger = openFilLedger(host, {
      cost: 'The upload would cost about',
      all: 'all uploads, deals and tasks together',
    })
  }

  /** Throws S3Error NotImplemented if the server has no storage payment API. */
  get client(): ServiceClient {
    const { paymentUrl, timeoutSeconds, tokenHeader } = this.options
    const url = paymentUrl ?? this.host.paymentUrl
    if (url === undefined) {
      throw new S3Error('NotImplemented', {
        message: 'This server was started without a storage payment API: see --payment-url.',
      })
    }
    this.#client ??= new ServiceClient({
      service: 'payment service',
      url,
      timeoutMs: timeoutSeconds * 1000,
      tokenHeader,
    })
    return this.#client
  }

  /** The variant of the service. Throws S3Error. */
  variant(): Promise<Variant> {
    return this.facts.variant()
  }

  async close(): Promise<void> {
    const client = this.#client
    this.#client = undefined
    await client?.close()
  }
}

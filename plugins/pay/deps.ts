import {
  Attempts,
  IdentitySecrets,
  JobTokens,
  OptionalService,
  openFilLedger,
  type PluginHost,
  SentRequests,
  type ServiceClient,
  type SpendLedger,
  secretKeyHash,
} from 'dealgate'
import { ServiceFacts, type Variant } from './facts.js'
import type { PayOptions } from './options.js'
import type { Wallets } from './sign-in.js'
import { MadeUploads, type UploadAttempt } from './upload/made-uploads.js'

/** Shared by the operations and jobs of this plugin. */
export class PayDeps {
  readonly options: PayOptions
  readonly host: PluginHost
  readonly wallets: Wallets
  readonly jobTokens: JobTokens
  readonly attempts: Attempts
  readonly facts: ServiceFacts
  readonly made: MadeUploads
  readonly ledger: SpendLedger
  readonly sent: SentRequests<UploadAttempt>
  readonly #service: OptionalService

  /** @param host need not have started yet */
  constructor(options: PayOptions, host: PluginHost) {
    this.options = options
    this.host = host
    this.wallets = new IdentitySecrets(host, {
      records: 'pay-sessions',
      purpose: 'pay:session',
      hash: secretKeyHash,
    })
    this.jobTokens = new JobTokens(host, 'pay:job-bearer')
    this.attempts = new Attempts(() => host.now())
    this.facts = new ServiceFacts(this)
    this.made = new MadeUploads(host)
    this.ledger = openFilLedger(host, {
      cost: 'The upload would cost about',
      all: 'all uploads, deals and tasks together',
    })
    this.sent = new SentRequests(host, {
      records: 'pay-attempts',
      ledger: this.ledger,
      patienceSeconds: options.reconcileAfterSeconds,
    })
    const { paymentUrl, timeoutSeconds, tokenHeader } = options
    this.#service = new OptionalService(
      () => ({
        service: 'payment service',
        url: paymentUrl ?? host.paymentUrl,
        timeoutMs: timeoutSeconds * 1000,
        tokenHeader,
      }),
      'This server was started without a storage payment API: see --payment-url.',
    )
  }

  /** Throws S3Error NotImplemented if the server has no storage payment API. */
  get client(): ServiceClient {
    return this.#service.client
  }

  /** The variant of the service. Throws S3Error. */
  variant(): Promise<Variant> {
    return this.facts.variant()
  }

  close(): Promise<void> {
    return this.#service.close()
  }
}

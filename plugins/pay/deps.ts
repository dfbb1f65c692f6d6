import { IdentitySecrets, PaidService, secretKeyHash } from 'dealgate/paid'
import type { PluginHost } from 'dealgate/plugin'
import { type Mode, ServiceFacts } from './facts.js'
import type { PayOptions } from './options.js'
import { OwnerSessions } from './owner.js'
import type { Wallets } from './sign-in.js'
import { MadeUploads, type UploadAttempt } from './upload/made-uploads.js'

export class PayDeps extends PaidService<UploadAttempt> {
  readonly options: PayOptions
  readonly wallets: Wallets
  readonly facts: ServiceFacts
  readonly made: MadeUploads
  readonly owner: OwnerSessions

  /** @param host need not have started yet */
  constructor(options: PayOptions, host: PluginHost) {
    super(host, {
      plugin: 'pay',
      service: 'payment service',
      url: () => options.paymentUrl ?? host.paymentUrl,
      timeoutSeconds: options.timeoutSeconds,
      tokenHeader: options.tokenHeader,
      missing: 'This server was started without a storage payment API: see --payment-url.',
      spending: { cost: 'The upload would cost about', all: 'all uploads, deals and tasks together' },
      patienceSeconds: options.reconcileAfterSeconds,
    })
    this.options = options
    this.wallets = new IdentitySecrets(host, {
      records: 'pay-sessions',
      purpose: 'pay:session',
      hash: secretKeyHash,
    })
    this.facts = new ServiceFacts(this)
    this.made = new MadeUploads(host)
    // Another service than the one that the server was started with does not know its owner.
    this.owner = new OwnerSessions(this, options.paymentUrl === undefined ? options.owner : undefined)
  }

  mode(): Promise<Mode> {
    return this.facts.mode()
  }
}

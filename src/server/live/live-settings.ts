import { addressing } from '../../request/addressing/addressing.js'
import { WebhookClient } from '../../s3/notifications/delivery/webhook-client.js'
import { joinWebhooks } from '../../s3/notifications/delivery/webhooks.js'
import { defaultLimits, type Limits } from '../limits.js'
import type { LiveOptions, ProxyOptions } from '../proxy-options.js'
import { type Replaceable, replaceable } from './replaceable.js'

/** Checked settings that are not in use yet. */
export interface NextSettings {
  readonly limits: Limits
  use(): void
}

/** The settings of a proxy that can change while it serves requests. */
export class LiveSettings {
  readonly webhooks: WebhookClient
  accessLog: boolean
  readonly #options: ProxyOptions
  readonly #limits: Replaceable<Limits>
  readonly #addressing: Replaceable<ReturnType<typeof addressing>>

  /** @throws TypeError for an invalid domain or address */
  constructor(options: ProxyOptions) {
    this.#options = options
    this.#limits = replaceable({ ...defaultLimits, ...options.limits })
    this.#addressing = replaceable(addressing(options))
    this.webhooks = new WebhookClient(joinWebhooks(options.webhooks ?? []))
    this.accessLog = options.accessLog ?? true
  }

  /** The present ones, also after a change. */
  get limits(): Limits {
    return this.#limits.values
  }

  /** The present one, also after a change. */
  get addressing(): ReturnType<typeof addressing> {
    return this.#addressing.values
  }

  /** @throws TypeError for an invalid domain or address */
  prepare(next: LiveOptions): NextSettings {
    const webhooks = joinWebhooks(next.webhooks ?? [])
    const limits = { ...defaultLimits, ...(next.limits ?? this.#options.limits) }
    const hosts = addressing({ ...this.#options, ...next })
    return {
      limits,
      use: () => {
        this.#limits.replace(limits)
        this.#addressing.replace(hosts)
        this.webhooks.replace(webhooks)
        this.accessLog = next.accessLog ?? true
      },
    }
  }
}

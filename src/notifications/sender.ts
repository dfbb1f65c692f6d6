import type { Logger } from '../log.js'
import type { ObjectEvent } from '../registry/hooks.js'
import type { BucketSettings } from '../state/bucket-settings.js'
import { type Claim, takeClaim } from '../state/claim.js'
import type { State } from '../state/state.js'
import { Delivery } from './delivery.js'
import { laneName } from './lanes.js'
import { eventMessage } from './messages.js'
import { Outbox, sequencerOf } from './outbox.js'
import { wants } from './rules.js'
import { Sequencer } from './sequencer.js'
import type { WebhookClient } from './webhook-client.js'

export interface SenderOptions {
  readonly state: Pick<State, 'shared' | 'records' | 'locks'>
  readonly settings: BucketSettings
  readonly client: WebhookClient
  readonly region: string
  readonly log: Logger
  /** Age at which a message is given up, ms. Default 24 hours. */
  readonly giveUpAfterMs?: number
  /** Messages that may wait at most; what comes beyond is dropped. Default 100,000. */
  readonly maxWaiting?: number
  /** See DeliveryOptions. */
  readonly firstRetryMs?: number
}

const GIVE_UP_MS = 24 * 60 * 60 * 1000
const MAX_WAITING = 100_000
/** How long proxies on one state wait at least before they look for what others have written, and whether it is their turn to deliver, ms. */
const TURN_MS = 5000

/** Writes events down for the webhooks that want them, and delivers what is written. Of proxies on one state one delivers for all. */
export class Sender {
  readonly #options: SenderOptions
  readonly #outbox: Outbox
  readonly #sequencer = new Sequencer()
  #claim: Claim | undefined
  #delivery: Delivery | undefined
  #timer: NodeJS.Timeout | undefined
  #turning: Promise<void> | undefined
  #stopped = false

  constructor(options: SenderOptions) {
    this.#options = options
    this.#outbox = new Outbox(options.state, options.log, options.maxWaiting ?? MAX_WAITING)
  }

  /** Durable when it resolves. Throws S3Error when the state fails. */
  async tell(event: ObjectEvent): Promise<void> {
    const configuration = await this.#options.settings.get(event.bucket, 'notifications')
    const rules = configuration?.rules.filter((rule) => wants(rule, event)) ?? []
    if (!configuration || rules.length === 0) return
    const sequencer = this.#sequencer.next()
    const { region } = this.#options
    const { owner } = configuration
    const { bucket, key, time: since } = event
    await Promise.all(
      rules.map(async ({ id: ruleId, webhook }) => {
        const body = eventMessage(event, { region, ruleId, owner, sequencer })
        const message = { webhook, bucket, key, since, body }
        const id = await this.#outbox.add(sequencer, message, this.#delivery?.waiting ?? 0)
        if (id !== undefined) this.#delivery?.add(id, webhook, laneName(message))
      }),
    )
  }

  /** Takes up what an earlier run has left. Throws S3Error when the state fails. */
  async start(): Promise<void> {
    const waiting = await this.#turn()
    if (this.#options.state.shared) this.#schedule(waiting)
  }

  async stop(): Promise<void> {
    this.#stopped = true
    clearTimeout(this.#timer)
    await this.#turning
    await this.#delivery?.stop()
    await this.#claim?.release()
  }

  /** The more there is to read, the more seldom. */
  #schedule(waiting: number): void {
    if (this.#stopped) return
    const next = async () => {
      const found = await this.#turn().catch((err) => {
        this.#options.log.error({ err }, 'waiting notifications could not be read yet')
        return waiting
      })
      this.#schedule(found)
    }
    this.#timer = setTimeout(
      () => {
        this.#turning = next()
      },
      Math.max(TURN_MS, waiting),
    )
    this.#timer.unref()
  }

  /** Takes the claim if it is free, and takes up what it does not know yet. Resolves to how many messages it has read. */
  async #turn(): Promise<number> {
    const { state, log } = this.#options
    if (this.#claim && !this.#claim.held()) {
      await this.#delivery?.stop()
      await this.#claim.release()
      this.#claim = this.#delivery = undefined
    }
    this.#claim ??= await takeClaim(state, 'notifications', log)
    if (!this.#claim) return 0
    const delivery = this.#delivery ?? this.#newDelivery()
    const found: [id: string, webhook: string, lane: string][] = []
    // Without the bodies: they are read again one by one.
    for await (const [id, message] of this.#outbox.entries()) found.push([id, message.webhook, laneName(message)])
    for (const [id, webhook, lane] of found.sort(([a], [b]) => (a < b ? -1 : 1))) {
      this.#sequencer.follow(sequencerOf(id))
      // Other proxies cannot count what waits.
      if (delivery.waiting >= this.#outbox.maxWaiting && !delivery.has(id, lane)) await this.#outbox.discard(id)
      else delivery.add(id, webhook, lane)
    }
    this.#delivery = delivery
    return found.length
  }

  #newDelivery(): Delivery {
    const { client, log, giveUpAfterMs = GIVE_UP_MS, firstRetryMs } = this.#options
    return new Delivery({ outbox: this.#outbox, client, log, giveUpAfterMs, firstRetryMs })
  }
}

import type { BucketSettings, Lease, Logger, ObjectEvent, PluginState } from 'dealgate/plugin'
import { wants } from './configuration.js'
import { Delivery, laneName } from './delivery.js'
import { eventMessage, Outbox, sequencerOf } from './outbox.js'
import type { WebhookClient } from './webhook-client.js'

interface SenderOptions {
  readonly state: Pick<PluginState, 'shared' | 'records'>
  /** Resolves undefined while another process delivers. */
  readonly lease: () => Promise<Lease | undefined>
  readonly settings: BucketSettings
  readonly client: WebhookClient
  readonly region: string
  readonly log: Logger
  /** Age at which a message is discarded, ms. */
  readonly giveUpAfterMs: number
  /** Largest number of waiting messages; further ones are dropped. Default 100,000. */
  readonly maxWaiting?: number
  /** See DeliveryOptions. */
  readonly firstRetryMs?: number
}

const MAX_WAITING = 100_000

/**
 * Shortest interval at which a proxy on a shared state looks for messages of others and for the lease to deliver them,
 * ms.
 */
const POLL_MS = 5000

/**
 * Queues events for the webhooks that subscribe to them, and delivers the queue. One of the proxies on a shared state
 * delivers for all.
 */
export class Sender {
  readonly #options: SenderOptions
  readonly #outbox: Outbox
  readonly #sequencer = new Sequencer()
  #lease: Lease | undefined
  #delivery: Delivery | undefined
  #timer: NodeJS.Timeout | undefined
  #polling: Promise<void> | undefined
  #stopped = false

  constructor(options: SenderOptions) {
    this.#options = options
    this.#outbox = new Outbox(options.state, options.log, options.maxWaiting ?? MAX_WAITING)
  }

  /** Queues messages about an event; durable when it resolves. Throws S3Error if the state fails. */
  async notify(event: ObjectEvent): Promise<void> {
    const configuration = await this.#options.settings.get(event.bucket, 'notifications')
    const rules = configuration?.rules.filter((rule) => wants(rule, event)) ?? []
    if (!configuration || rules.length === 0) return
    const sequencer = this.#sequencer.next()
    const { region } = this.#options
    const { owner } = configuration
    const { bucket, key, time: since, origin } = event
    await Promise.all(
      rules.map(async ({ id: ruleId, webhook }) => {
        const body = eventMessage(event, { region, ruleId, owner, sequencer })
        const message = { webhook, bucket, key, since, body }
        const id = await this.#outbox.add(sequencer, message, this.#delivery?.waiting ?? 0, origin.requestId)
        if (id !== undefined) this.#delivery?.add(id, webhook, laneName(message))
      }),
    )
  }

  /** Schedules the messages that an earlier run left. Throws S3Error if the state fails. */
  async start(): Promise<void> {
    const waiting = await this.#poll()
    if (this.#options.state.shared) this.#schedule(waiting)
  }

  /** What this process has yet to deliver, by webhook; ages are ms. Empty where another process delivers. */
  backlog(): readonly { readonly webhook: string; readonly waiting: number; readonly ageMs: number }[] {
    return [...(this.#delivery?.backlog() ?? [])].map(([webhook, { waiting, oldest }]) => ({
      webhook,
      waiting,
      ageMs: oldest === undefined ? 0 : Math.max(0, Date.now() - timeOf(sequencerOf(oldest))),
    }))
  }

  async stop(): Promise<void> {
    this.#stopped = true
    clearTimeout(this.#timer)
    await this.#polling
    await this.#delivery?.stop()
    await this.#lease?.release()
  }

  /** Schedules the next poll; the interval grows with the number of messages to read. */
  #schedule(waiting: number): void {
    if (this.#stopped) return
    const next = async () => {
      const found = await this.#poll().catch((err) => {
        this.#options.log.error({ err }, 'could not read waiting notifications yet')
        return waiting
      })
      this.#schedule(found)
    }
    this.#timer = setTimeout(
      () => {
        this.#polling = next()
      },
      Math.max(POLL_MS, waiting),
    )
    this.#timer.unref()
  }

  /** Takes the lease if it is free, and schedules new messages. Resolves with the number of messages read. */
  async #poll(): Promise<number> {
    const { lease } = this.#options
    if (this.#lease && !this.#lease.held()) {
      await this.#delivery?.stop()
      await this.#lease.release()
      this.#lease = this.#delivery = undefined
    }
    this.#lease ??= await lease()
    if (!this.#lease) return 0
    const delivery = this.#delivery ?? this.#newDelivery()
    const found: [id: string, webhook: string, queue: string][] = []
    // The bodies are read again one by one, to save memory.
    for await (const [id, message] of this.#outbox.entries()) found.push([id, message.webhook, laneName(message)])
    for (const [id, webhook, queue] of found.sort(([a], [b]) => (a < b ? -1 : 1))) {
      this.#sequencer.follow(sequencerOf(id))
      // Other proxies cannot count the waiting messages, so the limit is enforced here.
      if (delivery.waiting >= this.#outbox.maxWaiting && !delivery.has(id, queue)) await this.#outbox.discard(id)
      else delivery.add(id, webhook, queue)
    }
    this.#delivery = delivery
    return found.length
  }

  #newDelivery(): Delivery {
    const { client, log, giveUpAfterMs, firstRetryMs } = this.#options
    return new Delivery({ outbox: this.#outbox, client, log, giveUpAfterMs, firstRetryMs })
  }
}

/** When the event with that number was, ms since 1970. */
function timeOf(sequencer: string): number {
  return Number.parseInt(sequencer, 16) / 1000
}

/** Number of hexadecimal digits for every number below 2^64, so that texts sort as the numbers do. */
const DIGITS = 16

/**
 * Numbers events. Each number sorts after the previous one as text, even if the clock is set back. Numbers are
 * microseconds since 1970 unless events come faster. "You can use sequencer to determine the order of events for a
 * given object key" (notification-content-structure.html).
 */
export class Sequencer {
  #last = 0

  constructor(readonly now: () => number = Date.now) {}

  next(): string {
    this.#last = Math.max(this.now() * 1000, this.#last + 1)
    return this.#last.toString(16).toUpperCase().padStart(DIGITS, '0')
  }

  /** Continues after this number. */
  follow(sequencer: string): void {
    const number = Number.parseInt(sequencer, 16)
    if (Number.isSafeInteger(number)) this.#last = Math.max(this.#last, number)
  }
}

import type { Logger } from '../log.js'
import { Lane } from './lanes.js'
import type { Outbox, Waiting } from './outbox.js'
import type { WebhookClient } from './webhook-client.js'

export interface DeliveryOptions {
  readonly outbox: Outbox
  readonly client: WebhookClient
  readonly log: Logger
  /** Age at which a message is given up, ms. */
  readonly giveUpAfterMs: number
  /** Pause after the first failure, ms; doubled with each further one. Default one second. */
  readonly firstRetryMs?: number
}

/** Messages under way to one webhook at once. */
const CONCURRENCY = 8
const FIRST_RETRY_MS = 1000
const LONGEST_RETRY_MS = 5 * 60 * 1000
/** How long `stop` lets messages under way arrive, ms. */
const STOP_MS = 2000

/**
 * Brings waiting messages to their webhooks: each until it was taken or grew too old, those about one object in order, several objects at once. A message that is not
 * taken holds up no other object's. In memory is an id for each message, no more.
 */
export class Delivery {
  readonly #options: DeliveryOptions
  readonly #lanes = new Map<string, Lane>()
  readonly #webhooks = new Map<string, WebhookState>()
  readonly #running = new Set<Promise<void>>()
  readonly #retries = new Set<NodeJS.Timeout>()
  readonly #abort = new AbortController()
  #waiting = 0
  #stopped = false

  constructor(options: DeliveryOptions) {
    this.#options = options
  }

  /** Messages that are waiting. */
  get waiting(): number {
    return this.#waiting
  }

  /**
   * Takes up a message that is in the outbox; one that is known already stays as it is.
   * @param name of its lane
   */
  add(id: string, webhook: string, name: string): void {
    if (this.#stopped) return
    const known = this.#lanes.get(name)
    const lane = known ?? new Lane(webhook, name)
    if (!lane.add(id)) return
    this.#waiting++
    if (known) return
    this.#lanes.set(name, lane)
    this.#ready(lane)
  }

  /** True when a message is known to wait in the lane of that name. */
  has(id: string, name: string): boolean {
    return this.#lanes.get(name)?.has(id) ?? false
  }

  /** Ends deliveries; what has not arrived stays in the outbox. */
  async stop(): Promise<void> {
    this.#stopped = true
    for (const timer of this.#retries) clearTimeout(timer)
    const patience = setTimeout(() => this.#abort.abort(), STOP_MS)
    await Promise.all(this.#running)
    clearTimeout(patience)
  }

  #ready(lane: Lane): void {
    const webhook = this.#webhook(lane.webhook)
    webhook.ready.add(lane)
    this.#start(webhook)
  }

  #start(webhook: WebhookState): void {
    while (!this.#stopped && webhook.active < CONCURRENCY) {
      const [lane] = webhook.ready
      if (!lane) return
      webhook.ready.delete(lane)
      webhook.active++
      const work = this.#work(lane, webhook).finally(() => {
        webhook.active--
        this.#running.delete(work)
        this.#start(webhook)
      })
      this.#running.add(work)
    }
  }

  /** One attempt at the first message of a lane. Never rejects. */
  async #work(lane: Lane, webhook: WebhookState): Promise<void> {
    const id = lane.first
    if (id === undefined) return
    let done: boolean
    try {
      done = await this.#attempt(id, lane, webhook)
    } catch (err) {
      this.#options.log.error({ err, webhook: lane.webhook }, 'a notification could not be read or removed')
      done = false
    }
    if (!done) return this.#retry(lane)
    lane.attempts = 0
    lane.remove(id)
    this.#waiting--
    if (lane.first === undefined) this.#lanes.delete(lane.name)
    else this.#ready(lane)
  }

  /** Resolves true when the message need not be sent any more. */
  async #attempt(id: string, lane: Lane, webhook: WebhookState): Promise<boolean> {
    const { outbox, client } = this.#options
    const message = await outbox.get(id)
    if (!message) return true
    const refusal = await client.send(lane.webhook, { id, body: message.body }, this.#abort.signal)
    if (refusal !== undefined && !this.#isTooOld(message)) {
      if (!this.#stopped) this.#tellFailure(webhook, message, refusal)
      return false
    }
    if (refusal === undefined) this.#tellSuccess(webhook, lane.webhook)
    else this.#tellLoss(id, message, refusal)
    await outbox.remove(id)
    return true
  }

  #isTooOld({ since }: Waiting): boolean {
    return Date.now() - since >= this.#options.giveUpAfterMs
  }

  /** Doubled each time, and by a random part less, so that many do not come back at once. */
  #retry(lane: Lane): void {
    if (this.#stopped) return
    const first = this.#options.firstRetryMs ?? FIRST_RETRY_MS
    const pause = Math.min(first * 2 ** lane.attempts++, LONGEST_RETRY_MS) * (0.5 + Math.random() / 2)
    const timer = setTimeout(() => {
      this.#retries.delete(timer)
      this.#ready(lane)
    }, pause)
    timer.unref()
    this.#retries.add(timer)
  }

  #webhook(name: string): WebhookState {
    const known = this.#webhooks.get(name)
    if (known) return known
    const made: WebhookState = { ready: new Set(), active: 0, failing: false }
    this.#webhooks.set(name, made)
    return made
  }

  /** Once for each time that a webhook stops working, not for each message. */
  #tellFailure(state: WebhookState, { webhook, bucket }: Waiting, why: string): void {
    const level = state.failing ? 'debug' : 'warn'
    state.failing = true
    this.#options.log[level]({ webhook, bucket, why }, 'a webhook did not take a notification; it will be sent again')
  }

  #tellSuccess(state: WebhookState, webhook: string): void {
    if (state.failing) this.#options.log.info({ webhook }, 'a webhook takes notifications again')
    state.failing = false
  }

  #tellLoss(id: string, { webhook, bucket, key }: Waiting, why: string): void {
    this.#options.log.error(
      { webhook, bucket, key, delivery: id, why },
      'a notification is given up: its webhook has not taken it for too long',
    )
  }
}

interface WebhookState {
  /** Lanes whose turn it is. */
  readonly ready: Set<Lane>
  active: number
  failing: boolean
}

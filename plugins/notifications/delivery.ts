import { createHash } from 'node:crypto'
import { jitteredPause, type Logger } from 'dealgate/plugin'
import type { Outbox, Queued } from './outbox.js'
import type { WebhookClient } from './webhook-client.js'

interface DeliveryOptions {
  readonly outbox: Outbox
  readonly client: WebhookClient
  readonly log: Logger
  /** Age at which a message is discarded, ms. */
  readonly giveUpAfterMs: number
  /** Pause after the first failure, ms; doubled after each further failure. Default one second. */
  readonly firstRetryMs?: number
}

/** Number of concurrent messages per webhook. */
const MAX_CONCURRENCY = 8
const FIRST_RETRY_MS = 1000
const MAX_RETRY_MS = 5 * 60 * 1000

/** How long `stop` waits for messages in transit, ms. */
const STOP_MS = 2000

/**
 * Delivers queued messages to their webhooks, and retries each until it is accepted or too old. Messages about one
 * object are delivered in order, those about several objects concurrently. A message that fails delays only messages
 * about the same object. Memory holds only the id of each message.
 */
export class Delivery {
  readonly #options: DeliveryOptions
  readonly #queues = new Map<string, DeliveryQueue>()
  readonly #webhooks = new Map<string, WebhookState>()
  readonly #running = new Set<Promise<void>>()
  readonly #retries = new Set<NodeJS.Timeout>()
  readonly #abort = new AbortController()
  #waiting = 0
  #stopped = false

  constructor(options: DeliveryOptions) {
    this.#options = options
  }

  /** Number of waiting messages. */
  get waiting(): number {
    return this.#waiting
  }

  /** What waits, by webhook: the number of messages, and the id of the oldest one. */
  backlog(): ReadonlyMap<string, Backlog> {
    const found = new Map<string, Backlog>()
    for (const { webhook, first, size } of this.#queues.values()) {
      const known = found.get(webhook)
      const oldest = [known?.oldest, first].filter((id) => id !== undefined).sort()[0]
      found.set(webhook, { waiting: (known?.waiting ?? 0) + size, oldest })
    }
    return found
  }

  /**
   * Schedules a message of the outbox. Ignores one that is already scheduled.
   * @param name name of its queue
   */
  add(id: string, webhook: string, name: string): void {
    if (this.#stopped) return
    const known = this.#queues.get(name)
    const queue = known ?? new DeliveryQueue(webhook, name)
    if (!queue.add(id)) return
    this.#waiting++
    if (known) return
    this.#queues.set(name, queue)
    this.#ready(queue)
  }

  /** Returns true if the message waits in the queue of that name. */
  has(id: string, name: string): boolean {
    return this.#queues.get(name)?.has(id) ?? false
  }

  /** Ends deliveries. Undelivered messages stay in the outbox. */
  async stop(): Promise<void> {
    this.#stopped = true
    for (const timer of this.#retries) clearTimeout(timer)
    const timer = setTimeout(() => this.#abort.abort(), STOP_MS)
    await Promise.all(this.#running)
    clearTimeout(timer)
  }

  #ready(queue: DeliveryQueue): void {
    const webhook = this.#webhook(queue.webhook)
    webhook.ready.add(queue)
    this.#start(webhook)
  }

  #start(webhook: WebhookState): void {
    while (!this.#stopped && webhook.active < MAX_CONCURRENCY) {
      const [queue] = webhook.ready
      if (!queue) return
      webhook.ready.delete(queue)
      webhook.active++
      const work = this.#work(queue, webhook).finally(() => {
        webhook.active--
        this.#running.delete(work)
        this.#start(webhook)
      })
      this.#running.add(work)
    }
  }

  /** Attempts to deliver the first message of a queue. Never rejects. */
  async #work(queue: DeliveryQueue, webhook: WebhookState): Promise<void> {
    const id = queue.first
    if (id === undefined) return
    let done: boolean
    try {
      done = await this.#attempt(id, queue, webhook)
    } catch (err) {
      this.#options.log.error({ err, webhook: queue.webhook }, 'could not read or remove a notification')
      done = false
    }
    if (!done) return this.#retry(queue)
    queue.attempts = 0
    queue.remove(id)
    this.#waiting--
    if (queue.first === undefined) this.#queues.delete(queue.name)
    else this.#ready(queue)
  }

  /** Resolves true if the message need not be sent again. */
  async #attempt(id: string, queue: DeliveryQueue, webhook: WebhookState): Promise<boolean> {
    const { outbox, client } = this.#options
    const message = await outbox.get(id)
    if (!message) return true
    const refusal = await client.send(queue.webhook, { id, body: message.body }, this.#abort.signal)
    if (refusal !== undefined && !this.#isTooOld(message)) {
      if (!this.#stopped) this.#reportFailure(webhook, message, refusal)
      return false
    }
    if (refusal === undefined) this.#reportSuccess(webhook, queue.webhook)
    else this.#reportLoss(id, message, refusal)
    await outbox.remove(id)
    return true
  }

  #isTooOld({ since }: Queued): boolean {
    return Date.now() - since >= this.#options.giveUpAfterMs
  }

  /** Schedules a retry with exponential backoff and jitter. */
  #retry(queue: DeliveryQueue): void {
    if (this.#stopped) return
    queue.attempts++
    const { firstRetryMs: firstMs = FIRST_RETRY_MS } = this.#options
    const pause = jitteredPause(queue.attempts, { firstMs, longestMs: MAX_RETRY_MS })
    const timer = setTimeout(() => {
      this.#retries.delete(timer)
      this.#ready(queue)
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

  /** Logs a warning once each time a webhook starts to fail, not for each message. */
  #reportFailure(state: WebhookState, { webhook, bucket }: Queued, why: string): void {
    const level = state.failing ? 'debug' : 'warn'
    state.failing = true
    this.#options.log[level]({ webhook, bucket, why }, 'a webhook did not accept a notification; will retry')
  }

  #reportSuccess(state: WebhookState, webhook: string): void {
    if (state.failing) this.#options.log.info({ webhook }, 'a webhook accepts notifications again')
    state.failing = false
  }

  #reportLoss(id: string, { webhook, bucket, key }: Queued, why: string): void {
    this.#options.log.error(
      { webhook, bucket, key, delivery: id, why },
      'discarded a notification that its webhook did not accept in time',
    )
  }
}

interface Backlog {
  readonly waiting: number
  readonly oldest: string | undefined
}

interface WebhookState {
  /** Lanes that are ready for an attempt. */
  readonly ready: Set<DeliveryQueue>
  active: number
  failing: boolean
}

/**
 * The queue of messages about one object to one webhook, which are delivered sequentially, in the order of their ids.
 */
class DeliveryQueue {
  readonly #ids = new Set<string>()
  #last = ''
  /** Number of failed attempts at the first message. */
  attempts = 0

  constructor(
    readonly webhook: string,
    readonly name: string,
  ) {}

  get size(): number {
    return this.#ids.size
  }

  get first(): string | undefined {
    for (const id of this.#ids) return id
    return undefined
  }

  /**
   * Adds an id; returns false if it is already queued. Ids of another proxy may come late: they are inserted in order,
   * but after the first, which may be in transit.
   */
  add(id: string): boolean {
    if (this.#ids.has(id)) return false
    this.#ids.add(id)
    if (id > this.#last) this.#last = id
    else {
      const [first = id, ...others] = this.#ids
      this.#ids.clear()
      for (const each of [first, ...others.sort()]) this.#ids.add(each)
    }
    return true
  }

  has(id: string): boolean {
    return this.#ids.has(id)
  }

  remove(id: string): void {
    this.#ids.delete(id)
  }
}

/** Returns the name of a queue, which is short even for long keys. */
export function laneName({ webhook, bucket, key }: Pick<Queued, 'webhook' | 'bucket' | 'key'>): string {
  return createHash('sha256').update(`${webhook}\0${bucket}\0${key}`).digest('base64url').slice(0, 22)
}

import { randomBytes } from 'node:crypto'
import type { Logger } from '../../../common/log.js'
import type { Records, State } from '../../../state/state.js'

/** Shortest interval between log lines about dropped messages, ms. */
const TELL_MS = 60_000

/** A message that waits for delivery. */
export interface Waiting {
  readonly webhook: string
  readonly bucket: string
  readonly key: string
  /** Milliseconds since 1970. */
  readonly since: number
  /** Body as it is sent. */
  readonly body: string
}

/** Durable queue of messages. Ids sort by time. Failures of the state are S3Error ServiceUnavailable. */
export class Outbox {
  readonly #records: Records<Waiting>
  readonly #log: Logger
  #dropped = 0
  /** Time of the last log line about dropped messages, ms since 1970. */
  #told = 0

  constructor(
    state: Pick<State, 'records'>,
    log: Logger,
    /** Largest number of waiting messages, as far as this process knows. */
    readonly maxWaiting: number,
  ) {
    this.#records = state.records<Waiting>('notifications')
    this.#log = log
  }

  /**
   * Adds a message. Resolves with its id once it is durable, or with undefined if the queue is full; that is logged.
   * @param requestId of the request that caused it
   */
  async add(sequencer: string, message: Waiting, waiting: number, requestId?: string): Promise<string | undefined> {
    if (waiting >= this.maxWaiting) {
      this.#drop(message, requestId)
      return undefined
    }
    const id = `${sequencer}-${randomBytes(6).toString('hex')}`
    await this.#records.set(id, message)
    return id
  }

  get(id: string): Promise<Waiting | undefined> {
    return this.#records.get(id)
  }

  remove(id: string): Promise<void> {
    return this.#records.delete(id)
  }

  /** Drops a message because the queue is full, and logs it. */
  async discard(id: string): Promise<void> {
    const message = await this.#records.get(id)
    if (!message) return
    this.#drop(message)
    await this.#records.delete(id)
  }

  /** Iterates over all messages in no particular order. */
  entries(): AsyncIterable<[id: string, message: Waiting]> {
    return this.#records.entries()
  }

  /** Limits the log, because a line per message would fill the disk. */
  #drop({ webhook, bucket, key }: Waiting, requestId?: string): void {
    this.#dropped++
    if (Date.now() - this.#told < TELL_MS) return
    this.#told = Date.now()
    this.#log.error(
      { requestId, webhook, bucket, key, dropped: this.#dropped },
      'dropped notifications because the queue of undelivered ones is full',
    )
  }
}

/** Returns the part of an id that is the sequencer of the message's event. */
export function sequencerOf(id: string): string {
  return id.slice(0, id.indexOf('-'))
}

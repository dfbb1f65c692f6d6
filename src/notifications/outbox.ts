import { randomBytes } from 'node:crypto'
import type { Logger } from '../log.js'
import type { Records, State } from '../state/state.js'

/** Least time between two lines in the log about what was dropped, ms. */
const TELL_MS = 60_000

/** A message that waits for its delivery. */
export interface Waiting {
  readonly webhook: string
  readonly bucket: string
  readonly key: string
  /** Milliseconds since 1970. */
  readonly since: number
  /** As it goes over the wire. */
  readonly body: string
}

/** Messages kept until they are delivered; ids sort in the order in which they came. Failures of the state are S3Error ServiceUnavailable. */
export class Outbox {
  readonly #records: Records<Waiting>
  readonly #log: Logger
  #dropped = 0
  /** When the log last said so, ms since 1970. */
  #told = 0

  constructor(
    state: Pick<State, 'records'>,
    log: Logger,
    /** Messages that may wait at most, by what is known here. */
    readonly maxWaiting: number,
  ) {
    this.#records = state.records<Waiting>('notifications')
    this.#log = log
  }

  /**
   * Durable when it resolves, to the message's id. Resolves undefined, and says so in the log, when `waiting` others leave no room.
   */
  async add(sequencer: string, message: Waiting, waiting: number): Promise<string | undefined> {
    if (waiting >= this.maxWaiting) {
      this.#drop(message)
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

  /** Gives up a message for which there is no room, and says so in the log. */
  async discard(id: string): Promise<void> {
    const message = await this.#records.get(id)
    if (!message) return
    this.#drop(message)
    await this.#records.delete(id)
  }

  /** In no order. */
  entries(): AsyncIterable<[id: string, message: Waiting]> {
    return this.#records.entries()
  }

  /** A line for each would fill the disk that is to be spared. */
  #drop({ webhook, bucket, key }: Waiting): void {
    this.#dropped++
    if (Date.now() - this.#told < TELL_MS) return
    this.#told = Date.now()
    this.#log.error(
      { webhook, bucket, key, dropped: this.#dropped },
      'notifications are dropped: as many as may wait are waiting for webhooks that do not take them',
    )
  }
}

/** The part of an id that the message's event has as its sequencer. */
export function sequencerOf(id: string): string {
  return id.slice(0, id.indexOf('-'))
}

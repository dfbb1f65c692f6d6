import { randomUUID } from 'node:crypto'
import type { Signals, Topic } from '../api/state.js'

/** The channel in Redis, and with another name in PostgreSQL. A message is `<sender> <topic> <text>`. */
export const CHANNEL = 'dealgate-signals'

/** The sender of messages from scripts inside the store. */
export const STORE = '-'

interface Listener {
  readonly topic: Topic
  readonly heard: (text: string) => void
  readonly missed: (() => void) | undefined
}

/** Passes messages between a connection and the listeners of this process. */
export class SignalBoard implements Signals {
  readonly #id = randomUUID()
  readonly #listeners = new Set<Listener>()
  readonly #publish: (message: string) => void

  /** @param publish sends a message to all proxies, this one too; must not throw */
  constructor(publish: (message: string) => void) {
    this.#publish = publish
  }

  send(topic: Topic, text: string): void {
    this.#publish(`${this.#id} ${topic} ${text}`)
  }

  on(topic: Topic, heard: (text: string) => void, missed?: () => void): () => void {
    const listener = { topic, heard, missed }
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** A message has arrived, also from this process itself. */
  receive(message: string): void {
    const [sender, topic, ...rest] = message.split(' ')
    if (sender === this.#id) return
    const text = rest.join(' ')
    for (const listener of this.#listeners) if (listener.topic === topic) listener.heard(text)
  }

  /** The connection is new: messages may have been lost before. */
  missed(): void {
    for (const { missed } of this.#listeners) missed?.()
  }
}

/** For a store that no other process uses. */
export const noSignals: Signals = Object.freeze({ send() {}, on: () => () => {} })

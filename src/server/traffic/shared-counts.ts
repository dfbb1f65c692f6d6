import { LRUCache } from 'lru-cache'
import { parseJson } from '../../../common/json.js'
import { upTo } from '../../../common/lru.js'
import type { Signals } from '../../api/state.js'
import { type ClientBounds, DueClients, type Usage } from './gate.js'

interface Pending {
  requests: number
  bytes: number
  readonly since: number
}

/** A client's counts are sent when they reach this part of its burst: rarely enough, and soon enough. */
const SHARE = 1 / 8
/** Time for which counts are collected, ms. */
const COLLECTED_MS = 50
/** Most clients whose counts wait. */
const MAX_CLIENTS = 10_000

/**
 * Sends the counts of clients to the other processes on the same state, so that all count together. Messages may be
 * lost, and come later than the requests: a client can exceed its burst by what it begins everywhere at once, and then
 * waits longer.
 */
export class SharedCounts {
  readonly #signals: Signals
  readonly #clock: () => number
  readonly #pending: LRUCache<string, Pending>
  readonly #due: DueClients
  readonly #stop: () => void

  /**
   * @param heard called with what a client has taken in another process
   * @param clock monotonic, ms
   */
  constructor(signals: Signals, heard: (client: string, counted: Usage) => void, clock: () => number) {
    this.#signals = signals
    this.#clock = clock
    this.#due = new DueClients(COLLECTED_MS, (clients) => this.#send(clients))
    this.#pending = new LRUCache({
      ...upTo(MAX_CLIENTS),
      dispose: (_, client, reason) => reason === 'evict' && this.#due.delete(client),
    })
    this.#stop = signals.on('traffic', (text) => {
      for (const [client, requests, bytes] of readMessage(text)) heard(client, { requests, bytes })
    })
  }

  /** @param client with its kind, such as `key AKIA…`, without line breaks */
  add(client: string, { requests, bytes }: Usage, bounds: ClientBounds): void {
    const now = this.#clock()
    let pending = this.#pending.get(client)
    // After this time its allowance is full again: the others need not know what it took before.
    if (!pending || now - pending.since > refillMs(bounds)) pending = { requests: 0, bytes: 0, since: now }
    pending.requests += requests
    pending.bytes += bytes
    this.#pending.set(client, pending)
    if (isMuch(pending, bounds)) this.#due.add(client)
  }

  close(): void {
    this.#stop()
    this.#due.close()
  }

  #send(clients: readonly string[]): void {
    const reported = clients.flatMap((client) => {
      const pending = this.#pending.get(client)
      this.#pending.delete(client)
      return pending ? [[client, pending.requests, pending.bytes]] : []
    })
    if (reported.length > 0) this.#signals.send('traffic', JSON.stringify(reported))
  }
}

function isMuch({ requests, bytes }: Usage, bounds: ClientBounds): boolean {
  const { requests: ofRequests, bytes: ofBytes } = bounds
  return (
    (ofRequests !== undefined && requests >= ofRequests.burst * SHARE) ||
    (ofBytes !== undefined && Math.abs(bytes) >= ofBytes.burst * SHARE)
  )
}

function refillMs({ requests, bytes }: ClientBounds): number {
  return 1000 * Math.max(...[requests, bytes].map((rate) => (rate ? rate.burst / rate.perSecond : 0)))
}

/** Other versions of this program may send something else. */
function readMessage(text: string): readonly (readonly [client: string, requests: number, bytes: number])[] {
  const read = parseJson(text)
  if (!Array.isArray(read)) return []
  return read.filter(
    (entry): entry is [string, number, number] =>
      Array.isArray(entry) && typeof entry[0] === 'string' && Number.isFinite(entry[1]) && Number.isFinite(entry[2]),
  )
}

import { pauseAfter } from '../common/backoff.js'
import type { Logger } from '../common/log.js'
import { SignalBoard } from '../src/state/signals.js'

/** What a database has for signals. */
export interface SignalEngine {
  /** Sends a message to all that listen. */
  publish(message: string): Promise<unknown>
  /**
   * Opens a connection of its own, and resolves when all messages that are sent from then on arrive.
   * @param heard gets each message
   * @param lost called once the connection is of no more use, more than once perhaps
   */
  listen(heard: (message: string) => void, lost: (reason?: unknown) => void): Promise<Listening>
}

interface Listening {
  /** Ends the connection at once. Must not throw. */
  close(): void
}

interface OpenedSignals {
  readonly signals: SignalBoard
  close(): void
}

/** Before a connection that failed is made anew. */
const BACKOFF = { firstMs: 100, longestMs: 2000 }

/** Signals over a connection that is made anew whenever it is lost. Those of that time are lost: see `missed`. */
export function openSignals({ publish, listen }: SignalEngine, log: Logger): OpenedSignals {
  const board = new SignalBoard((message) => {
    publish(message).catch((err: unknown) => log.debug({ err }, 'could not send a signal'))
  })
  let closed = false
  let listening: Listening | undefined
  let next: NodeJS.Timeout | undefined
  let failures = 0
  let everListened = false

  const again = (err: unknown): void => {
    failures++
    // Once: a user of the database may never get the right to listen.
    const level = failures === 1 && !everListened ? 'warn' : 'debug'
    log[level]({ err }, 'cannot listen to signals of other proxies; their changes are found by polling')
    next = setTimeout(begin, pauseAfter(failures, BACKOFF)).unref()
  }

  async function begin(): Promise<void> {
    let isLost = false
    let mine: Listening | undefined
    const lost = (err?: unknown): void => {
      if (isLost) return
      isLost = true
      mine?.close()
      // Before it listens, the attempt itself fails.
      if (mine !== undefined && !closed) again(err)
    }
    try {
      mine = await listen((message) => board.receive(message), lost)
    } catch (error) {
      isLost = true
      if (!closed) again(error)
      return
    }
    if (closed || isLost) {
      mine.close()
      if (!closed) again(new Error('The connection was lost.'))
      return
    }
    listening = mine
    failures = 0
    everListened = true
    board.missed()
  }

  void begin()
  return {
    signals: board,
    close() {
      closed = true
      clearTimeout(next)
      listening?.close()
    },
  }
}

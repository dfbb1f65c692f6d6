import { setTimeout as sleep } from 'node:timers/promises'
import { pauseAfter } from '../../common/backoff.js'
import { ReportedAlready, S3Error } from '../../common/errors/s3-error.js'
import type { Logger } from '../../common/log.js'
import type { KnownStores } from '../api/known-stores.js'

interface GuardOptions {
  /** Name for the log. */
  readonly store: string
  /** Time without any answer after which all waiting calls fail, ms. */
  readonly timeoutMs: number
  /** The cheapest call of the store. Rejects while the store is unusable. */
  readonly probe: () => Promise<unknown>
  readonly log: Logger
}

/** Before a hanging store is probed. */
const BACKOFF = { firstMs: 200, longestMs: 2000 }

/**
 * Timeouts that a single call may wait while others are answered: it may be queued behind many calls, or
 * its connection may be dead.
 */
const MAX_TIMEOUTS = 4

/**
 * A timeout for calls to a store over the network, and a circuit breaker. A store that answers nothing for the timeout
 * while calls wait is considered hanging: all waiting calls fail, and later calls fail at once until a probe succeeds.
 * A request thus waits for a hanging store only once, however many calls it makes. A call that timed out may still take
 * effect. A store that refuses calls fails fast by itself and does not open the breaker.
 */
export class Guard {
  readonly #options: GuardOptions
  readonly #waiting = new Set<(error: Error) => void>()
  #open = false
  #closed = false
  /** Time of the last answer, by performance.now(). */
  #answered = 0

  constructor(options: GuardOptions) {
    this.#options = options
  }

  /** True while calls fail at once. */
  get open(): boolean {
    return this.#open
  }

  /** Settles as the call does. Rejects when the call times out or the store is known to hang. */
  async run<R>(call: () => Promise<R>): Promise<R> {
    if (this.#open) throw this.#silent()
    return this.#limited(call, () => this.#trip())
  }

  close(): void {
    this.#closed = true
  }

  async #limited<R>(call: () => Promise<R>, onOverdue: () => void): Promise<R> {
    let give: (error: Error) => void = () => {}
    const given = new Promise<never>((_, reject) => {
      give = reject
    })
    const { timeoutMs } = this.#options
    const begun = performance.now()
    let settled = false
    let timer: NodeJS.Timeout | undefined
    // A process that was stopped or busy sees the timeout before it has read the answers that arrived meanwhile, so it
    // reads those first.
    const lookIn = (ms: number) => {
      timer = setTimeout(() => setImmediate(() => setImmediate(look)), ms)
    }
    const look = () => {
      if (settled) return
      const now = performance.now()
      const left = Math.max(begun, this.#answered) + timeoutMs - now
      if (left > 0 && now < begun + MAX_TIMEOUTS * timeoutMs) return lookIn(left)
      give(this.#silent())
      if (left <= 0) onOverdue()
    }
    lookIn(timeoutMs)
    this.#waiting.add(give)
    try {
      const answer = await Promise.race([call(), given])
      this.#answered = performance.now()
      return answer
    } finally {
      settled = true
      clearTimeout(timer)
      this.#waiting.delete(give)
    }
  }

  #trip(): void {
    if (this.#open || this.#closed) return
    this.#open = true
    const { log, store, timeoutMs } = this.#options
    log.error({ store, timeoutMs }, 'the state store does not answer: requests that need it are refused until it does')
    for (const give of this.#waiting) give(this.#silent())
    void this.#probe()
  }

  /** Half-open state: one call at a time, for which no client waits. */
  async #probe(): Promise<void> {
    const { log, store, probe } = this.#options
    for (let failures = 1; !this.#closed; failures++) {
      await sleep(pauseAfter(failures, BACKOFF), undefined, { ref: false })
      if (this.#closed) return
      try {
        await this.#limited(probe, () => {})
        this.#open = false
        log.info({ store }, 'the state store answers again')
        return
      } catch {
        // Retried after the next pause.
      }
    }
  }

  #silent(): Error {
    return new Error(`The state store did not answer within ${this.#options.timeoutMs} ms`)
  }
}

/**
 * Interval at which a gateway that knows the store gets its id again, ms: it may have been restored from a backup or
 * replaced.
 */
const REPORT_MS = 5 * 60_000

/** Shortest pause after a failure, ms. */
const RETRY_MS = 10_000

const MESSAGE = 'The gateway could not be asked about the state store.'

/** The gateway's knowledge of the store of records. The gateway outlives data folders. */
export class GatewayWitness {
  readonly #gateway: KnownStores
  readonly #log: Logger
  #isDown = false
  #reported: { readonly storeId: string; readonly until: number } | undefined
  #answeredFor: string | undefined
  /**
   * False for a store in a data folder: a new folder has a new store, which other stores do not contradict. The gateway
   * then knows the marks alone.
   */
  readonly judgesNew: boolean

  constructor(gateway: KnownStores, log: Logger, judgesNew: boolean) {
    this.#gateway = gateway
    this.#log = log
    this.judgesNew = judgesNew
  }

  /** Whether this store id was reported to the gateway, and has answered, since the start of the process. */
  hasAnsweredFor(storeId: string): boolean {
    return this.#answeredFor === storeId
  }

  /**
   * True when the gateway was used with other stores and not with the store of this id, or not with an empty one.
   * Throws S3Error ServiceUnavailable when it cannot be queried.
   */
  async contradicts(storeId: string | undefined): Promise<boolean> {
    if (!this.judgesNew) return false
    const found = await this.#asked(this.#gateway.look(storeId))
    return found?.others === true && !found.known
  }

  /**
   * Reports the store id and its mark to the gateway. The gateway knows them once this resolves, with the highest mark
   * that was reported to it before. Throws S3Error ServiceUnavailable.
   */
  async report({ epoch: storeId, over = [], mark = 0 }: StoreIdentity): Promise<number> {
    // By its name, servers with other stores do not count a store in a data folder among those of the gateway.
    const nameOf = (one: string) => (this.judgesNew ? one : `folder:${one}`)
    const before = await this.#asked(this.#gateway.keep(nameOf(storeId), over.map(nameOf), mark))
    this.#reported = { storeId, until: performance.now() + REPORT_MS }
    this.#answeredFor = storeId
    return before?.mark ?? 0
  }

  /**
   * Like `report`, in the background and periodically, so that nothing waits for a gateway that is down.
   * @param onMark gets the highest mark that was reported to the gateway before
   */
  reportLater(identity: StoreIdentity, onMark: (mark: number) => Promise<void>): void {
    const now = performance.now()
    if (this.#reported?.storeId === identity.epoch && now < this.#reported.until) return
    this.#reported = { storeId: identity.epoch, until: now + RETRY_MS }
    // `#asked` logs the failure, and a later call retries.
    this.report(identity)
      .then(onMark)
      .catch(() => {})
  }

  /** Logs a failure once, until the gateway has answered again. */
  async #asked<T>(answer: Promise<T>): Promise<T> {
    try {
      const answered = await answer
      this.#isDown = false
      return answered
    } catch (error) {
      const reason = (error as Error).message
      if (!this.#isDown) this.#log.warn({ reason }, MESSAGE)
      this.#isDown = true
      throw new S3Error('ServiceUnavailable', { message: `${MESSAGE} ${reason}`, cause: new ReportedAlready(reason) })
    }
  }
}

/** The identity of a store of records, from its creation until it is lost. */
export interface StoreIdentity {
  /** The store id. Stores, folder.json and gateways of earlier versions name it `epoch`, so that it keeps this name. */
  readonly epoch: string
  /**
   * Earlier ids whose loss an operator has accepted, as far as they were known. Absent in a store created without an
   * operator.
   */
  readonly over?: readonly string[]
  /**
   * Raised before records that prevent a second payment or keep a bucket closed, in the last of the places alone. A
   * store with a lower mark than a data folder or the gateway has seen was restored from a backup. Absent: 0.
   */
  readonly mark?: number
}

import { setMaxListeners } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { pauseAfter } from '../../../common/backoff.js'
import { S3Error } from '../../../common/errors/s3-error.js'
import type { Logger, Logging } from '../../../common/log.js'
import type { UploadResult } from '../../api/gateway.js'
import { isNotConnected } from '../errors.js'

/** Time for which a late answer to a write is awaited after its client learned that the outcome is unknown, ms. */
export const LATE_ANSWER_MS = 120_000
/** Most writes in doubt at a time. Each holds a connection and a lock. */
const MAX_WRITES = 1000
/** Most bytes of such writes that may wait in memory for a gateway that does not read them, in total. */
const MAX_UNSENT_BYTES = 16 * 1024 * 1024
/**
 * Between the end of a connection and the first look at the gateway, and between two looks: the gateway may still carry
 * out what it received.
 */
const BACKOFF = { firstMs: 1000, longestMs: 10_000 }

/** The server stopped before the outcome of a write was known. The gateway may still carry it out. */
export const UNRESOLVED = Symbol('unresolved')

/** The outcome of a write in doubt: what the gateway has stored, or undefined when it holds nothing of the write. */
export type WriteOutcome = UploadResult | typeof UNRESOLVED | undefined

/**
 * A write was sent, its outcome is unknown, and the gateway may still carry it out. No other write to its key may be
 * sent before `outcome` resolves.
 */
export class InDoubt extends S3Error {
  /** Resolves once the gateway has revealed the outcome, or the server stops. Never rejects. */
  readonly outcome: Promise<WriteOutcome>

  constructor({ code, status, message, headers, fields, cause }: S3Error, outcome: InDoubt['outcome']) {
    super(code, { status, message, headers, fields, cause })
    this.outcome = outcome
  }
}

/**
 * Errors that do not prove that the gateway itself refused a write: they may come from an intermediate server, or from
 * a gateway that failed halfway.
 */
const UNSURE: ReadonlySet<string> = new Set(['ServiceUnavailable', 'InternalError', 'SlowDown'])

/** True when the write may have been carried out or may still be. */
export function leavesOpen(error: unknown): error is S3Error {
  if (!(error instanceof S3Error) || error instanceof InDoubt) return false
  return UNSURE.has(error.code) && !isNotConnected(error.cause)
}

/** The part of a body that is still in memory because the gateway has not read it. */
interface Unsent {
  readonly bytes: number
  /** Closes the connection, so that the gateway never gets the whole body. */
  cut(): void
}

interface Doubt extends Partial<Unsent> {
  /** Logs the lines about the write. */
  readonly logger?: Logging | undefined
}

/** Finds the outcomes of the writes in doubt of all accounts of one gateway. */
export class InDoubtWrites {
  /** Logs what no request logs. */
  readonly #own: Logging
  readonly #closing = new AbortController()
  #count = 0
  #unsent = 0

  constructor(log: Logger) {
    this.#own = { log }
    // Each write in doubt adds a listener.
    setMaxListeners(0, this.#closing.signal)
  }

  /** Throws S3Error SlowDown when too many writes are in doubt. Called before a write is sent. */
  admit(): void {
    if (this.#count < MAX_WRITES) return
    throw new S3Error('SlowDown', {
      message: 'Too many writes wait for the object gateway to reveal their outcome. Try again.',
      headers: { 'retry-after': '5' },
    })
  }

  /**
   * Finds the outcome of a write. Never rejects. Keeps at most MAX_UNSENT_BYTES of bodies that the gateway does not
   * read, and closes the connections of further ones.
   * @param late resolves with the meaning of a late answer; rejects when no answer can come any more or it is not
   * understood
   * @param look asks the gateway what it holds; rejects when it cannot be queried or its answer is not reliable
   * @param doubt without bytes: nothing is in memory
   */
  async findOutcome(
    late: Promise<UploadResult | undefined>,
    look: () => Promise<UploadResult | undefined>,
    { bytes = 0, cut, logger = this.#own }: Doubt = {},
  ): Promise<WriteOutcome> {
    const kept = this.#unsent + bytes <= MAX_UNSENT_BYTES ? bytes : 0
    if (kept < bytes) cut?.()
    this.#unsent += kept
    this.#count++
    try {
      return await this.#findOutcome(late, look, logger)
    } catch (err) {
      if (this.#closing.signal.aborted) return UNRESOLVED
      logger.log.error({ err }, 'the outcome of a write cannot be found')
      return undefined
    } finally {
      this.#count--
      this.#unsent -= kept
    }
  }

  close(): void {
    this.#closing.abort()
  }

  async #findOutcome(
    late: Promise<UploadResult | undefined>,
    look: () => Promise<UploadResult | undefined>,
    logger: Logging,
  ) {
    const { signal } = this.#closing
    try {
      return await unlessAborted(late, signal)
    } catch {
      signal.throwIfAborted()
    }
    for (let looks = 1; ; looks++) {
      const pause = pauseAfter(looks, BACKOFF)
      await sleep(pause, undefined, { signal, ref: false })
      try {
        return await look()
      } catch (err) {
        if (isFinal(err, pause)) return undefined
        logger.log.debug({ err }, 'the outcome of a write cannot be found yet')
      }
    }
  }
}

/**
 * True when the gateway answers but will never tell: the bucket is gone, or the account may not look any more. The
 * latter is retried a few times, because the operator may correct it. The connection ended long ago, and the key must
 * not stay locked forever.
 */
function isFinal(err: unknown, pause: number): boolean {
  if (!(err instanceof S3Error)) return false
  return err.code === 'NoSuchBucket' || (err.code === 'AccessDenied' && pause >= BACKOFF.longestMs)
}

async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  let end = () => {}
  const aborted = new Promise<never>((_, reject) => {
    end = () => reject(signal.reason)
    if (signal.aborted) end()
    else signal.addEventListener('abort', end)
  })
  try {
    return await Promise.race([work, aborted])
  } finally {
    signal.removeEventListener('abort', end)
  }
}

import { S3Error } from '../../common/errors/s3-error.js'
import { ToldAlready } from '../../common/errors/told-already.js'
import type { Logger } from '../../common/log.js'
import type { KnownEpochs } from '../../gateway/account/known-epochs.js'
import type { Epoch } from './store-epoch.js'

/**
 * Interval at which a gateway that knows the epoch is told again, ms: it may have been restored from a backup or
 * replaced.
 */
const TELL_MS = 5 * 60_000
/** Shortest pause after a failure, ms. */
const RETRY_MS = 10_000

const MESSAGE = 'The gateway could not be asked about the state store.'

/** The gateway's knowledge of the store of records. The gateway outlives data folders. */
export class GatewayWitness {
  readonly #gateway: KnownEpochs
  readonly #log: Logger
  #isDown = false
  #told: { readonly epoch: string; readonly until: number } | undefined

  constructor(gateway: KnownEpochs, log: Logger) {
    this.#gateway = gateway
    this.#log = log
  }

  /**
   * True when the gateway was used with other stores and not with the store of this epoch, or not with an empty one.
   * Throws S3Error ServiceUnavailable when it cannot be queried.
   */
  async contradicts(epoch: string | undefined): Promise<boolean> {
    const found = await this.#asked(this.#gateway.look(epoch))
    return found?.others === true && !found.known
  }

  /** Tells the gateway the epoch. The gateway knows it once this resolves. Throws S3Error ServiceUnavailable. */
  async tell({ epoch, over = [] }: Epoch): Promise<void> {
    await this.#asked(this.#gateway.keep(epoch, over))
    this.#told = { epoch, until: performance.now() + TELL_MS }
  }

  /** Like `tell`, in the background and periodically, so that nothing waits for a gateway that is down. */
  tellLater(epoch: Epoch): void {
    const now = performance.now()
    if (this.#told?.epoch === epoch.epoch && now < this.#told.until) return
    this.#told = { epoch: epoch.epoch, until: now + RETRY_MS }
    // `#asked` logs the failure, and a later call retries.
    this.tell(epoch).catch(() => {})
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
      throw new S3Error('ServiceUnavailable', { message: `${MESSAGE} ${reason}`, cause: new ToldAlready(reason) })
    }
  }
}

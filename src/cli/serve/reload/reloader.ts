import { type Logger, setLogLevel } from '../../../common/log.js'
import type { Reloaded } from '../../../plugins/server-calls/plugin.js'
import type { Prepared } from '../../../server/proxy-options.js'
import { type Config, flagOf, type OptionName, readAgain } from '../../config/config.js'
import { describeError } from '../../failure.js'
import { changesOf } from './changes.js'

/** Checks a configuration, and prepares it. Rejects for one that cannot be used. */
export type Prepare = (next: Config) => Promise<Prepared>

export interface ReloaderOptions {
  /** As it was read at the start. */
  readonly config: Config
  readonly log: Logger
  readonly prepare: Prepare
}

/** Reads the configuration of a running server again: all of it is used, or nothing. One reload at a time. */
export class Reloader {
  readonly #first: Config
  readonly #log: Logger
  readonly #prepare: Prepare
  #running: Config
  #last: Promise<unknown> = Promise.resolve()

  constructor({ config, log, prepare }: ReloaderOptions) {
    this.#first = config
    this.#running = config
    this.#log = log
    this.#prepare = prepare
  }

  /**
   * The configuration in use, once reloads in progress have ended.
   * @param onRead called before any later reload begins
   */
  current(onRead: () => void): Promise<Config> {
    const read = this.#last.then(() => {
      onRead()
      return this.#running
    })
    this.#last = read
    return read
  }

  /**
   * Rejects, without any change, for a configuration that cannot be used. The log has the outcome.
   * @param cause `SIGHUP`, or who asked for it
   * @param requestId of the request that asked for it
   */
  reload(cause: string, requestId?: string): Promise<Reloaded> {
    const done = this.#last.then(() => this.#reload(cause, requestId))
    this.#last = done.catch(() => {})
    return done
  }

  async #reload(cause: string, requestId: string | undefined): Promise<Reloaded> {
    try {
      const { next, changed, needRestart } = changesOf(this.#running, readAgain(this.#first))
      const prepared = await this.#prepare(next)
      await prepared.apply()
      this.#running = next
      setLogLevel(this.#log, next.logLevel)
      const facts = { requestId, cause, changed: flagsOf(changed), needRestart: flagsOf(needRestart) }
      this.#log.info(facts, 'reloaded the configuration')
      if (needRestart.length > 0)
        this.#log.warn(
          { requestId, options: facts.needRestart },
          'these options have changed: restart the server to use them',
        )
      return { changed: facts.changed, needRestart: facts.needRestart }
    } catch (error) {
      this.#log.error(
        { requestId, cause, reason: describeError(error) },
        'could not reload the configuration: nothing has changed',
      )
      throw error
    }
  }
}

function flagsOf(names: readonly OptionName[]): string[] {
  return names.map(flagOf)
}

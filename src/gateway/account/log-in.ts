import type { GatewayAccount } from '../../auth/caller.js'
import { S3Error, ToldAlready } from '../../common/errors/s3-error.js'
import type { Logger } from '../../common/log.js'
import type { Rpc } from '../calls/rpc.js'
import { nonsense } from '../errors.js'
import { type AccountKeys, isSameAccount, tokenOf } from './session.js'

export type AccountSource = GatewayAccount | (() => Promise<GatewayAccount>)

export interface LogInOptions {
  readonly rpc: Rpc
  readonly account: AccountSource
  /** Keys of accounts that have changed. */
  readonly keys?: AccountKeys | undefined
  readonly now: () => number
  readonly log: Logger
}

/** Cause of the S3Error for an account whose log-in the gateway refuses. */
class LogInRefused extends ToldAlready {}

/** True when a call failed because the gateway refuses the log-in, as opposed to the call itself. */
export function isLogInRefused(error: unknown): boolean {
  return error instanceof S3Error && error.cause instanceof LogInRefused
}

/**
 * Pause after a refused log-in before the next attempt, ms: the gateway may count wrong log-ins, and a wrong key pair
 * stays wrong.
 */
const PAUSE_MS = 5_000
/** A lasting refusal is logged once per this interval, ms. */
const LOG_EVERY_MS = 60_000

/**
 * Logs an account in. A key pair that the gateway refuses is a fault of this server and no denial of the client's
 * request: the request is answered 503, and the log-in is retried after a pause. At most once a minute one of the
 * requests that fail logs the refusal, with its id.
 */
export class LogIn {
  readonly #options: LogInOptions
  #pauseUntil = Number.NEGATIVE_INFINITY
  #logAgain = Number.NEGATIVE_INFINITY
  #reason = ''

  constructor(options: LogInOptions) {
    this.#options = options
  }

  /** The current keys of the account. */
  async account(): Promise<GatewayAccount> {
    const given = await this.#given()
    return this.#options.keys?.latest(given) ?? given
  }

  async #given(): Promise<GatewayAccount> {
    const { account } = this.#options
    return typeof account === 'function' ? await account() : account
  }

  /** Requests a new token. Throws S3Error. */
  async token(): Promise<string> {
    const { now } = this.#options
    if (now() < this.#pauseUntil) throw this.#refused()
    const account = await this.account()
    try {
      return await this.#tokenFor(account)
    } catch (error) {
      if (!isDenied(error)) throw error
      const token = (await this.#tokenForPending(account)) ?? (await this.#tokenForFormer(account))
      if (token !== undefined) return token
      this.#pauseUntil = now() + PAUSE_MS
      this.#reason = error.message
      throw this.#refused()
    }
  }

  /** True when the gateway accepts these keys. Throws S3Error when it does not answer. */
  async accepts(account: GatewayAccount): Promise<boolean> {
    try {
      await this.#tokenFor(account)
      return true
    } catch (error) {
      if (isDenied(error)) return false
      throw error
    }
  }

  async #tokenFor({ accessKey, secretKey }: GatewayAccount): Promise<string> {
    const call = { method: 'web.Login', params: { username: accessKey, password: secretKey }, repeatable: true }
    const result = await this.#options.rpc.call(call).catch((error: unknown) => {
      // A server without web.Login does not speak this interface; it is not a gateway that merely knows fewer calls.
      if (error instanceof S3Error && error.code === 'NotImplemented') throw nonsense(`does not know ${call.method}`)
      throw error
    })
    return tokenOf(result, call.method)
  }

  /** Tries the keys of a change whose outcome was not known, such as one that a crash interrupted. */
  async #tokenForPending(account: GatewayAccount): Promise<string | undefined> {
    const { keys, log } = this.#options
    for (const next of keys?.pending(account) ?? []) {
      const token = await this.#tokenFor(next).catch((error: unknown) => {
        if (!isDenied(error)) throw error
      })
      if (token === undefined) continue
      await keys?.confirm(account, next).catch((err: unknown) => {
        log.error({ err }, 'the gateway has new keys for an account, which could not be stored everywhere')
      })
      log.info('an interrupted change of the keys of a gateway account has taken effect')
      return token
    }
    return undefined
  }

  /** Tries the configured keys, which the gateway may have been given again by other means than this server. */
  async #tokenForFormer(account: GatewayAccount): Promise<string | undefined> {
    const { keys, log } = this.#options
    const given = await this.#given()
    if (keys === undefined || isSameAccount(given, account)) return undefined
    const token = await this.#tokenFor(given).catch((error: unknown) => {
      if (!isDenied(error)) throw error
    })
    if (token === undefined) return undefined
    await keys.restore(given).catch((err: unknown) => log.error({ err }, 'former keys could not be stored as current'))
    log.warn('the gateway has the former keys of an account again; the server uses them')
    return token
  }

  #refused(): S3Error {
    return new S3Error('ServiceUnavailable', {
      message:
        'The object gateway does not accept the key pair that this server logs in with. The operator of this server has to correct it.',
      headers: { 'retry-after': String(PAUSE_MS / 1000) },
      cause: new LogInRefused('the object gateway refuses the log-in', (log, facts) => this.#tell(log, facts)),
    })
  }

  #tell(log: Logger, facts: object): void {
    const now = this.#options.now()
    if (now < this.#logAgain) return
    this.#logAgain = now + LOG_EVERY_MS
    const line = { ...facts, reason: this.#reason }
    log.error(line, 'the object gateway refuses the log-in; requests are answered 503 until it accepts it')
  }
}

function isDenied(error: unknown): error is S3Error {
  return error instanceof S3Error && error.code === 'AccessDenied'
}

import { S3Error } from '../../../common/errors/s3-error.js'
import { parseObject } from '../../../common/json.js'
import type { Logger } from '../../../common/log.js'
import type { GatewayAccount } from '../../api/identity.js'
import type { Rpc } from '../calls/rpc.js'
import type { RpcCall, RpcResult } from '../calls/rpc-sender.js'
import { nonsense, TokenRefused } from '../errors.js'
import { isDenied, LOG_EVERY_MS, type LogInOptions, LogInRefused, PAUSE_MS } from './log-in.js'

/** Calls the gateway as one account, or as none. */
export interface Session {
  /** Throws S3Error. */
  call(call: Omit<RpcCall, 'token'>): Promise<RpcResult>
  /**
   * Runs `use` with the log-in token, and once more with a new token if it throws TokenRefused. Without an account the
   * token is undefined.
   */
  withLogin<T>(use: (token: string | undefined) => Promise<T>): Promise<T>
  /** Makes the next call log in, if `token` is still the current one. */
  forgetLogin(token: string | undefined): void
  /** Like `withLogin`, with the short-lived token that downloads take in their address; '' without an account. */
  withUrlToken<T>(use: (token: string) => Promise<T>): Promise<T>
}

/**
 * Keeps the tokens of one account: requests a token when it is first needed, by one call for all waiting callers, and
 * once again when the gateway refuses it.
 */
export class AccountSession implements Session {
  readonly #rpc: Rpc
  readonly #login: RenewedToken
  readonly #url: RenewedToken

  constructor(rpc: Rpc, logIn: LogIn, now: () => number) {
    this.#rpc = rpc
    this.#login = new RenewedToken(now, () => logIn.token())
    this.#url = new RenewedToken(now, async () => {
      const call = { method: 'web.CreateURLToken', params: {}, repeatable: true }
      return tokenOf(await this.call(call), call.method)
    })
  }

  call(call: Omit<RpcCall, 'token'>): Promise<RpcResult> {
    return this.withLogin((token) => this.#rpc.call(withToken(call, token)))
  }

  withLogin<T>(use: (token: string) => Promise<T>): Promise<T> {
    return this.#login.use(use)
  }

  forgetLogin(token: string | undefined): void {
    if (token !== undefined) this.#login.forget(token)
  }

  withUrlToken<T>(use: (token: string) => Promise<T>): Promise<T> {
    return this.#url.use(use)
  }
}

/** Calls without a token: the gateway's own bucket policies decide. */
export class AnonymousSession implements Session {
  readonly #rpc: Rpc

  constructor(rpc: Rpc) {
    this.#rpc = rpc
  }

  call(call: Omit<RpcCall, 'token'>): Promise<RpcResult> {
    return refusable(() => this.#rpc.call(call))
  }

  withLogin<T>(use: (token: undefined) => Promise<T>): Promise<T> {
    return refusable(() => use(undefined))
  }

  forgetLogin(): void {}

  withUrlToken<T>(use: (token: string) => Promise<T>): Promise<T> {
    return refusable(() => use(''))
  }
}

/**
 * Translates the gateway's complaint about a missing log-in into S3's AccessDenied, which does not mention accounts.
 */
export async function refusable<T>(run: () => T | Promise<T>): Promise<T> {
  try {
    return await run()
  } catch (error) {
    const final = error instanceof TokenRefused ? error.final : error
    throw final instanceof S3Error && final.code === 'AccessDenied'
      ? new S3Error('AccessDenied', { cause: final })
      : final
  }
}

/** Member by member: a spread costs more than the rest of a call's preparation. */
function withToken(call: Omit<RpcCall, 'token'>, token: string): RpcCall {
  const { method, params, repeatable, headers, subject, timeoutMs, late } = call
  const all: { [Name in keyof Required<RpcCall>]: RpcCall[Name] } = {
    method,
    params,
    token,
    repeatable,
    headers,
    subject,
    timeoutMs,
    late,
  }
  return all
}

class RenewedToken {
  readonly #now: () => number
  readonly #obtain: () => Promise<string>
  #current: { readonly token: string; readonly until: number } | undefined
  #pending: Promise<string> | undefined

  constructor(now: () => number, obtain: () => Promise<string>) {
    this.#now = now
    this.#obtain = obtain
  }

  async use<T>(use: (token: string) => Promise<T>): Promise<T> {
    const token = this.#valid() ?? (await this.#get())
    try {
      return await use(token)
    } catch (error) {
      if (!(error instanceof TokenRefused)) throw error
      this.forget(token)
    }
    const renewed = await this.#get()
    try {
      return await use(renewed)
    } catch (error) {
      if (!(error instanceof TokenRefused)) throw error
      this.forget(renewed)
      throw error.final
    }
  }

  #valid(): string | undefined {
    return this.#current && this.#now() < this.#current.until ? this.#current.token : undefined
  }

  async #get(): Promise<string> {
    const token = this.#valid()
    if (token !== undefined) return token
    this.#pending ??= this.#renew().finally(() => {
      this.#pending = undefined
    })
    return this.#pending
  }

  async #renew(): Promise<string> {
    const token = await this.#obtain()
    this.#current = { token, until: usableUntil(token, this.#now()) }
    return token
  }

  /** Drops only the refused token: another call may have got a new one by now. */
  forget(token: string): void {
    if (this.#current?.token === token) this.#current = undefined
  }
}

/** Lifetime assumed for a token that does not state its own, ms: a third of 60 s, the shortest known lifetime. */
const ASSUMED_LIFE_MS = 20_000

/** Longest time before its expiry at which a token is no longer sent, ms. */
const MAX_MARGIN_MS = 15_000

/**
 * The time until which a token that arrived at `now` may be sent, milliseconds since 1970 by the local clock. Reads
 * `exp` and `iat` of a JWT. Both come from the gateway's clock: with `iat`, the local clock does not matter; an `exp`
 * in the local past means that the clocks differ rather than that the token is invalid.
 */
export function usableUntil(token: string, now: number): number {
  const claims = claimsOf(token)
  if (claims?.exp === undefined) return now + ASSUMED_LIFE_MS
  const lifeMs = claims.iat === undefined ? claims.exp * 1000 - now : (claims.exp - claims.iat) * 1000
  if (lifeMs <= 0) return now + ASSUMED_LIFE_MS
  return now + lifeMs - Math.min(MAX_MARGIN_MS, lifeMs / 4)
}

function claimsOf(token: string): { exp?: number; iat?: number } | undefined {
  const payload = token.split('.')[1]
  const claims = payload === undefined ? undefined : parseObject(Buffer.from(payload, 'base64url').toString('utf8'))
  return claims && { ...numeric(claims, 'exp'), ...numeric(claims, 'iat') }
}

function numeric<Name extends string>(claims: object, name: Name): { [K in Name]?: number } {
  const value: unknown = Reflect.get(claims, name)
  return typeof value === 'number' && Number.isFinite(value) ? ({ [name]: value } as { [K in Name]?: number }) : {}
}

export function isSameAccount(one: GatewayAccount, other: GatewayAccount): boolean {
  return one.accessKey === other.accessKey && one.secretKey === other.secretKey
}

function tokenOf(result: RpcResult, method: string): string {
  const token = result.token
  if (typeof token !== 'string' || token === '') throw nonsense(`answered ${method} without a token`)
  return token
}

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
      cause: new LogInRefused('the object gateway refuses the log-in', (log, facts) => this.#report(log, facts)),
    })
  }

  #report(log: Logger, facts: object): void {
    const now = this.#options.now()
    if (now < this.#logAgain) return
    this.#logAgain = now + LOG_EVERY_MS
    const line = { ...facts, reason: this.#reason }
    log.error(line, 'the object gateway refuses the log-in; requests are answered 503 until it accepts it')
  }
}

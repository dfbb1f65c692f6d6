import type { GatewayAccount } from '../../auth/caller.js'
import { S3Error } from '../../common/errors/s3-error.js'
import type { Rpc, RpcResult } from '../calls/rpc.js'
import type { RpcCall } from '../calls/rpc-sender.js'
import { nonsense, TokenRefused } from '../errors.js'
import type { LogIn } from './log-in.js'

export type { AccountSource } from './log-in.js'

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
    const token = await this.#get()
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

  async #get(): Promise<string> {
    if (this.#current && this.#now() < this.#current.until) return this.#current.token
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
const MARGIN_MS = 15_000

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
  return now + lifeMs - Math.min(MARGIN_MS, lifeMs / 4)
}

function claimsOf(token: string): { exp?: number; iat?: number } | undefined {
  const payload = token.split('.')[1]
  if (payload === undefined) return undefined
  try {
    const claims: unknown = JSON.parse(Buffer.from(payload, 'base64url').toString('utf8'))
    if (typeof claims !== 'object' || claims === null) return undefined
    return { ...numeric(claims, 'exp'), ...numeric(claims, 'iat') }
  } catch {
    return undefined
  }
}

function numeric<Name extends string>(claims: object, name: Name): { [K in Name]?: number } {
  const value: unknown = Reflect.get(claims, name)
  return typeof value === 'number' && Number.isFinite(value) ? ({ [name]: value } as { [K in Name]?: number }) : {}
}

/**
 * Keeps the keys of gateway accounts durably while they change, so that a crash at any point leaves keys that the
 * gateway accepts.
 */
export interface AccountKeys {
  /** The current keys of the account that had these; the same if they have not changed. */
  latest(account: GatewayAccount): GatewayAccount
  /** Keys that the gateway may have accepted in place of the current ones of the account. */
  pending(current: GatewayAccount): readonly GatewayAccount[]
  /**
   * Records, durably, that the gateway is about to be asked for `next` in place of `current`. Throws S3Error when that
   * is impossible; nothing may be asked then.
   */
  prepare(current: GatewayAccount, next: GatewayAccount): Promise<void>
  /** Makes `next` the current keys, durably, wherever they are kept. Throws when some place could not be changed. */
  confirm(current: GatewayAccount, next: GatewayAccount): Promise<void>
  /** Forgets what replaced these keys, because the gateway accepts them again. */
  restore(former: GatewayAccount): Promise<void>
  /** Forgets `next`, which the gateway has refused. */
  withdraw(current: GatewayAccount, next: GatewayAccount): Promise<void>
}

export function isSameAccount(one: GatewayAccount, other: GatewayAccount): boolean {
  return one.accessKey === other.accessKey && one.secretKey === other.secretKey
}

export function tokenOf(result: RpcResult, method: string): string {
  const token = result.token
  if (typeof token !== 'string' || token === '') throw nonsense(`answered ${method} without a token`)
  return token
}

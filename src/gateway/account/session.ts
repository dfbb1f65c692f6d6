import { S3Error } from '../../common/errors/s3-error.js'
import type { Rpc } from '../calls/rpc.js'
import type { RpcCall, RpcResult } from '../calls/rpc-call.js'
import { TokenRefused } from '../errors.js'
import { type LogIn, tokenOf } from './log-in.js'
import { usableUntil } from './token-life.js'

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

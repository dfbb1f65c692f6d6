import type { GatewayAccount } from '../auth/caller.js'
import { S3Error } from '../errors/s3-error.js'
import { nonsense, TokenRefused } from './errors.js'
import type { Rpc, RpcCall, RpcResult } from './rpc.js'
import { usableUntil } from './token-life.js'

export type AccountSource = GatewayAccount | (() => Promise<GatewayAccount>)

/** As whom the gateway is called. */
export interface Session {
  /** Throws S3Error. */
  call(call: Omit<RpcCall, 'token'>): Promise<RpcResult>
  /** Runs `use` with the log-in token, once more with a new one if it throws TokenRefused. Without an account there is no token. */
  withLogin<T>(use: (token: string | undefined) => Promise<T>): Promise<T>
  /** Has the next call log in, if `token` is still the one in use. */
  forgetLogin(token: string | undefined): void
  /** As `withLogin`, with the short-lived token that downloads take in their address; '' without an account. */
  withUrlToken<T>(use: (token: string) => Promise<T>): Promise<T>
}

/** One account's tokens: got when first needed, by one call however many wait, and again once when the gateway refuses them. */
export class AccountSession implements Session {
  readonly #rpc: Rpc
  readonly #login: RenewedToken
  readonly #url: RenewedToken

  constructor(rpc: Rpc, account: AccountSource, now: () => number) {
    this.#rpc = rpc
    this.#login = new RenewedToken(now, async () => {
      const { accessKey, secretKey } = typeof account === 'function' ? await account() : account
      const call = { method: 'web.Login', params: { username: accessKey, password: secretKey }, repeatable: true }
      return tokenOf(await rpc.call(call), call.method)
    })
    this.#url = new RenewedToken(now, async () => {
      const call = { method: 'web.CreateURLToken', params: {}, repeatable: true }
      return tokenOf(await this.call(call), call.method)
    })
  }

  call(call: Omit<RpcCall, 'token'>): Promise<RpcResult> {
    return this.withLogin((token) => this.#rpc.call({ ...call, token }))
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

/** Nobody's calls: without a token the gateway's own bucket policies decide. */
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

/** What the gateway says of a missing log-in is what S3 calls AccessDenied, without a word about accounts. */
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

  /** Only the token that was refused: another call may have got a new one by now. */
  forget(token: string): void {
    if (this.#current?.token === token) this.#current = undefined
  }
}

function tokenOf(result: RpcResult, method: string): string {
  const token = result.token
  if (typeof token !== 'string' || token === '') throw nonsense(`answered ${method} without a token`)
  return token
}

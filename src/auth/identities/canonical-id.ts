import { createHash } from 'node:crypto'
import type { Identity } from '../caller.js'

/** The writer of an object without a log-in, as S3 names it. */
export const ANONYMOUS_ID = '65a011a29cdf8ec533ec3d1ccaae921c'

/** The hash by which clients know an account or a key pair: 64 hexadecimal digits, stable, without any secret. */
export function idOf(text: string): string {
  return createHash('sha256').update(`dealgate:${text}`).digest('hex')
}

/** Canonical id of the server's own account. */
export const OWN_ID = idOf('account:')

/** Canonical id of the gateway account that an identity acts as: one for all its key pairs. */
export function canonicalId({ account }: Pick<Identity, 'account'>): string {
  return account === undefined ? OWN_ID : idOf(`account:${account.accessKey}`)
}

/** Names of gateway accounts, by their canonical ids. */
export class AccountNames {
  // The access key of the server's own account can change.
  readonly #names = new Map([[OWN_ID, 'dealgate']])
  readonly #learned = new WeakSet<Identity>()

  learn(identity: Identity): void {
    if (identity.account === undefined || this.#learned.has(identity)) return
    this.#learned.add(identity)
    this.#names.set(canonicalId(identity), identity.account.accessKey)
  }

  /** Undefined for an account of which no key pair was learned. */
  of(canonicalId: string): string | undefined {
    return this.#names.get(canonicalId)
  }
}

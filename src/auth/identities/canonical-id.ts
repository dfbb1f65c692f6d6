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

/** Name of the server's own account, whose keys can change. */
export const OWN_NAME = 'dealgate'

/** Canonical id of the gateway account that an identity acts as: one for all its key pairs. */
export function canonicalId({ account }: Pick<Identity, 'account'>): string {
  return account === undefined ? OWN_ID : idOf(`account:${account.accessKey}`)
}

/** Name of the gateway account that an identity acts as. */
export function accountName({ account }: Pick<Identity, 'account'>): string {
  return account?.accessKey ?? OWN_NAME
}

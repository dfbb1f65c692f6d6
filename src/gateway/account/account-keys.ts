import type { GatewayAccount } from '../../auth/caller.js'

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

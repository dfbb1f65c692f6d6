import { rfc3339 } from '../../clock.js'
import type { GatewayContext } from '../context.js'
import type { PlatformLogin } from '../deals/offline/platform-login.js'
import type { Account } from './accounts.js'
import { newPair } from './key-pair.js'

/** A user of the task platform. */
export interface PlatformUser {
  /** Never given to another user. */
  readonly id: string
  /** Display name of a new account. */
  readonly name: string
  /** True for the user that the platform makes at its first start. */
  readonly isFirst: boolean
}

/** The users of a task platform. A platform at which the gateway cannot act for them has no login. */
export interface PlatformUsers {
  readonly login?: PlatformLogin
  /** The user that a JWT of the platform belongs to; undefined when it is not valid. */
  userOf(token: string): Promise<PlatformUser | undefined>
}

/**
 * Finds the account of a user of the task platform, or makes one; the same user always gets the same account. The first
 * user gets the first account, because both are the owner's. Durable on return. The caller must have authenticated the
 * user.
 */
export function accountOfUser(
  { accounts, writer, clock }: Pick<GatewayContext, 'accounts' | 'writer' | 'clock'>,
  { id, name, isFirst }: PlatformUser,
): Promise<Account> {
  return writer.run(
    () =>
      (isFirst ? accounts.first() : accounts.ofUser(id)) ??
      accounts.add({ ...newPair(), name, user: id }, rfc3339(clock.now())),
  )
}

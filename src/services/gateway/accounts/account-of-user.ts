import { rfc3339 } from '../../clock.js'
import type { GatewayContext } from '../context.js'
import type { Account } from './accounts.js'
import { newPair } from './key-pair.js'

/**
 * Finds the account of a user of the task platform, or makes one; the same user always gets the same account. Durable
 * on return. The caller must have authenticated the user.
 * @param user id of the user at the platform, which is never given to another user
 * @param name display name of a new account
 */
export function accountOfUser(
  { accounts, writer, clock }: Pick<GatewayContext, 'accounts' | 'writer' | 'clock'>,
  user: string,
  name: string,
): Promise<Account> {
  return writer.run(() => accounts.ofUser(user) ?? accounts.add({ ...newPair(), name, user }, rfc3339(clock.now())))
}

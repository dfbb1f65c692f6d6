import type { Exchange } from '../http/exchange.js'

/**
 * True when the caller is the poster, or has the storage providers. Only they see how to reach the poster, and where
 * the CARs are: the URLs may be all that protects the contents.
 * @param poster id of a user
 */
export function isParty({ context, caller }: Pick<Exchange, 'context' | 'caller'>, poster: number): boolean {
  return caller !== undefined && (caller.user.id === poster || context.miners.isOwner(caller.user))
}

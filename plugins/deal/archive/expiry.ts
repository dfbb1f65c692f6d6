import type { Context } from '../../../src/context.js'
import { dueAfter } from '../../../src/lifecycle/rules.js'
import type { StoredObject } from '../../../src/store/store.js'

/**
 * When a copy that comes back at `now` goes again, ms since 1970: the midnight (UTC) after so many days, as S3 has it. Null for one that stays: without days, in gateway
 * accounts where this server gives nothing up by itself, and of an object in another class than GLACIER, which somebody else has given up.
 */
export function expiryOf(
  { archive }: Pick<StoredObject, 'archive'>,
  days: number,
  now: number,
  { caller }: Pick<Context, 'caller'>,
): number | null {
  const stays = days === 0 || archive?.storageClass !== 'GLACIER' || caller?.identity.account !== undefined
  return stays ? null : dueAfter(now, days)
}

import type { Context, StoredObject } from 'dealgate'
import { isEvicted } from '../configuration.js'

/**
 * When a copy that is restored at `now` expires, ms since 1970: the midnight UTC after `days` days, as in S3. Null for
 * a copy that stays: when no days are given, in gateway accounts in which this server evicts nothing, and for an object
 * outside GLACIER and DEEP_ARCHIVE, whose copy another program evicted.
 */
export function expiryOf(
  { archive }: Pick<StoredObject, 'archive'>,
  days: number,
  now: number,
  { caller, archive: archives }: Pick<Context, 'caller' | 'archive'>,
): number | null {
  const stays = days === 0 || !isEvicted(archive?.storageClass) || caller?.identity.account !== undefined
  return stays ? null : archives.expiry(now, days)
}

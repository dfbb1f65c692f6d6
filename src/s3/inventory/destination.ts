import type { Context } from '../../api/context.js'
import type { InventoryConfiguration, InventoryDestination } from './configuration.js'

/** What all keys of an inventory begin with, and end this part of it with `/`. */
export function baseOf(
  bucket: string,
  { id, destination: { prefix } }: Pick<InventoryConfiguration, 'id' | 'destination'>,
): string {
  return `${prefix === undefined ? '' : `${prefix}/`}${bucket}/${id}/`
}

/**
 * Throws AccessDenied or NoSuchBucket unless the caller may write such a key now, by rights, policies and ACLs, as for
 * PutObject; and InvalidRequest if the server lacks the key to encrypt it with.
 */
export async function requireDestination(
  context: Context,
  { bucket, encryption }: InventoryDestination,
  key: string,
): Promise<void> {
  await context.authorizer.decide({ action: 's3:PutObject', bucket, key })
  context.checks.requireKey(bucket, key, 'write')
  await context.checks.requireOwner(bucket, { action: 's3:PutObject', key })
  await context.store.storedAs({ bucket, key, encryption }, undefined)
}

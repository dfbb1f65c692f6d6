import type { Logging } from '../common/log.js'
import { MARKER_STAMP } from '../gateway/object-facts.js'
import type { HeldLock } from '../state/state.js'
import type { StoreParts } from './object-store.js'

/**
 * Restores folder objects after a removal. A gateway that keeps objects as files removes a folder with its last file,
 * also when a client had stored the folder as an object of its own (`photos/`). This keeps the promise that DELETE
 * deletes one key.
 */
export async function keepMarkers(
  { gateway, state }: Pick<StoreParts, 'gateway' | 'state'>,
  bucket: string,
  removed: string,
  lock: HeldLock,
  by: Logging,
): Promise<void> {
  const folders = foldersAbove(removed)
  const records = await state.objects.getMany(bucket, folders)
  const markers = folders.filter((_, i) => records[i]?.stamp === MARKER_STAMP)
  // Storing the innermost folder also creates the folders around it.
  const innermost = markers.at(-1)
  if (innermost === undefined) return
  const { entries } = await gateway.list(bucket, { prefix: innermost, delimiter: '', after: '', limit: 1 })
  if (entries.length > 0) return
  const attributes = { contentType: undefined, headers: {}, metadata: {} }
  const order = { fence: lock.fence, ensure: () => lock.ensure(), by }
  await gateway.upload(bucket, innermost, 0, attributes).commit(order)
}

/** `a/` and `a/b/` for `a/b/c`, without the key itself. */
function foldersAbove(key: string): string[] {
  const folders: string[] = []
  for (let at = key.indexOf('/'); at >= 0 && at < key.length - 1; at = key.indexOf('/', at + 1))
    folders.push(key.slice(0, at + 1))
  return folders
}

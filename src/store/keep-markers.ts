import type { StoreParts } from './create-store.js'
import { MARKER_STAMP } from './describe.js'

/**
 * A gateway that keeps objects as files removes a folder with the last file in it, also one that a client had stored as an object of its own (`photos/`).
 * After a removal such folders are put back, so that S3's promise holds: DELETE deletes one key.
 */
export async function keepMarkers({ gateway, state }: StoreParts, bucket: string, removed: string): Promise<void> {
  const folders = foldersAbove(removed)
  const records = await state.objects.getMany(bucket, folders)
  const markers = folders.filter((_, i) => records[i]?.stamp === MARKER_STAMP)
  // The innermost brings those around it along.
  const innermost = markers.at(-1)
  if (innermost === undefined) return
  const { entries } = await gateway.list(bucket, { prefix: innermost, delimiter: '', after: '', limit: 1 })
  if (entries.length > 0) return
  const attributes = { contentType: undefined, headers: {}, metadata: {} }
  await gateway.upload(bucket, innermost, 0, attributes).commit()
}

/** `a/`, `a/b/` for `a/b/c`; without the key itself. */
function foldersAbove(key: string): string[] {
  const folders: string[] = []
  for (let at = key.indexOf('/'); at >= 0 && at < key.length - 1; at = key.indexOf('/', at + 1))
    folders.push(key.slice(0, at + 1))
  return folders
}

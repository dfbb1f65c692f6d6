import { S3Error } from '../../common/errors/s3-error.js'
import type { Logging } from '../../common/log.js'
import type { Gateway, GatewayObject } from '../api/gateway.js'
import type { HeldLock } from '../api/locks.js'
import type { ObjectRecord } from '../api/object-records.js'
import type { State } from '../api/state.js'
import type { StoredObject } from '../api/store.js'
import { MARKER_REVISION } from '../gateway/object-facts.js'
import { joinRecord } from './stored-object.js'

// Objects whose keys end in "/", on gateways that keep objects as files and such keys as folders.

/** The error for an object with bytes under such a key. */
export function holdsNoBytes(): S3Error {
  return new S3Error('InvalidArgument', {
    message: 'The gateway cannot store this object: under a key that ends in "/" it stores only empty objects.',
  })
}

/** A legacy gateway does not show the object of a folder that has content: the record shows that one was stored. */
export async function findMarker(
  through: Gateway,
  bucket: string,
  key: string,
  record: ObjectRecord | undefined,
): Promise<StoredObject | undefined> {
  if (record?.revision !== MARKER_REVISION || record.key !== key) return undefined
  const below = await through.list(bucket, { prefix: key, delimiter: '', after: '', limit: 1 })
  return below.entries.length === 0 ? undefined : joinRecord(bucket, markerObject(key), record)
}

function markerObject(key: string): GatewayObject {
  return {
    key,
    size: 0,
    lastModified: '1970-01-01T00:00:00Z',
    contentType: 'binary/octet-stream',
    revision: MARKER_REVISION,
    etag: EMPTY_MD5,
    headers: {},
    metadata: {},
  }
}

/** The download of a folder object that `findMarker` has found. */
export function emptyDownload(key: string) {
  return {
    object: markerObject(key),
    first: 0,
    last: -1,
    consume: async () => {},
    lend: async () => {},
    discard: () => {},
  }
}

const EMPTY_MD5 = 'd41d8cd98f00b204e9800998ecf8427e'

/**
 * Restores folder objects after a removal. A gateway that keeps objects as files removes a folder with its last file,
 * also when a client had stored the folder as an object of its own (`photos/`). This keeps the promise that DELETE
 * deletes one key.
 */
export async function keepFolders(
  { gateway, state }: { readonly gateway: Gateway; readonly state: State },
  bucket: string,
  removed: string,
  lock: HeldLock,
  logger: Logging,
): Promise<void> {
  const folders = foldersAbove(removed)
  const records = await state.objects.getMany(bucket, folders)
  const markers = folders.filter((_, i) => records[i]?.revision === MARKER_REVISION)
  // Storing the innermost folder also creates the folders around it.
  const innermost = markers.at(-1)
  if (innermost === undefined) return
  const { entries } = await gateway.list(bucket, { prefix: innermost, delimiter: '', after: '', limit: 1 })
  if (entries.length > 0) return
  const attributes = { contentType: undefined, headers: {}, metadata: {} }
  const order = { fence: lock.fence, ensure: () => lock.ensure(), logger }
  await gateway.upload(bucket, innermost, 0, attributes).commit(order)
}

/** `a/` and `a/b/` for `a/b/c`, without the key itself. */
function foldersAbove(key: string): string[] {
  const folders: string[] = []
  for (let at = key.indexOf('/'); at >= 0 && at < key.length - 1; at = key.indexOf('/', at + 1))
    folders.push(key.slice(0, at + 1))
  return folders
}

import { isDeepStrictEqual } from 'node:util'
import { S3Error } from '../../common/errors/s3-error.js'
import type { Encrypted } from '../api/encryption.js'
import type { Download } from '../api/gateway.js'
import type { Archive } from '../api/object-records.js'
import type { ByteSink } from '../api/request.js'
import type { Cause, Rewrapped, Store, StoredObject } from '../api/store.js'
import type { ObjectLock } from '../api/versions.js'
import type { Unopened } from './encryption/age-header.js'
import type { Encryption } from './encryption/encryption.js'
import { aclToKeep } from './object-record.js'

const SKIPPED = {
  customer: 'It is encrypted with a key of a client.',
  cold: 'The gateway has no copy of it: its bytes are in deals, with the earlier header.',
  deals: 'Its storage class keeps it in deals, which have the earlier header.',
} as const

const UNOPENED: Readonly<Record<Unopened, string>> = {
  'no key': 'This server has no key that opens it.',
  'another place': 'It was encrypted for another bucket or key.',
  malformed: 'Its header is damaged.',
  'too many stanzas': 'Its header has too many recipients.',
}

/** Most looks at an object that changes each time. */
const MAX_ATTEMPTS = 10

type RewrapStore = Pick<Store, 'findToWrite' | 'openStored' | 'partChecksums' | 'put'>

/** See Store.rewrap. What changes of an object meanwhile, with or without its bytes, stays as it has become. */
export async function rewrapObject(
  store: RewrapStore,
  encryption: Encryption,
  bucket: string,
  key: string,
  event: Cause,
): Promise<Rewrapped> {
  for (let look = 0; look < MAX_ATTEMPTS; look++) {
    const done = await attempt(store, encryption, bucket, key, event)
    if (done !== 'changed') return done
  }
  return skipped('It was changed again and again.')
}

async function attempt(
  store: RewrapStore,
  encryption: Encryption,
  bucket: string,
  key: string,
  event: Cause,
): Promise<Rewrapped | 'changed'> {
  const object = await store.findToWrite(bucket, key)
  if (!object) return { outcome: 'Gone' }
  const { encrypted, archive, storedSize = object.size } = object
  if (!encrypted) return { outcome: 'Plain' }
  if (encrypted.algorithm === 'SSE-C') return skipped(SKIPPED.customer)
  if (object.cold) return skipped(SKIPPED.cold)
  if (archive?.storageClass !== undefined) return skipped(SKIPPED.deals)
  const head = await same(store, object, { first: 0, last: encrypted.header - 1 })
  if (!head) return 'changed'
  const parts: Buffer[] = []
  await head.consume((chunk) => void parts.push(chunk))
  const sealed = await encryption.rewrap({ bucket, key }, encrypted, Buffer.concat(parts))
  if (sealed === 'current') return { outcome: 'Current' }
  if (typeof sealed === 'string') return skipped(UNOPENED[sealed])
  sealed.header.fileKey.fill(0)
  const { header } = sealed.header
  const payload = await same(store, object, { first: encrypted.header, last: storedSize - 1 })
  if (!payload) return 'changed'
  const length = header.length + storedSize - encrypted.header
  try {
    await putAgain(store, object, sealed.encrypted, event, {
      length,
      async stream(sink) {
        await sink(header)
        await payload.consume(sink)
      },
    })
  } catch (error) {
    if (error instanceof S3Error && error.code === 'PreconditionFailed') return 'changed'
    throw error
  } finally {
    payload.discard()
  }
  const cid = archive?.facts?.cid
  return { outcome: 'Rewrapped', bytes: length, ...(cid !== undefined && { cid }) }
}

function skipped(why: string): Rewrapped {
  return { outcome: 'Skipped', why }
}

/** Stored bytes of this very object; undefined if it was replaced. */
async function same(
  store: Pick<Store, 'openStored'>,
  { bucket, key, revision, writeId }: StoredObject,
  range: { readonly first: number; readonly last: number },
): Promise<Download | undefined> {
  const { object, download } = await store.openStored(bucket, key, range)
  if (isSame(object, { revision, writeId })) return download
  download.discard()
  return undefined
}

type Version = Pick<StoredObject, 'revision' | 'writeId'>

/** True for the same version. Some answers of a legacy gateway do not tell the write. */
function isSame(one: Version | undefined, { revision, writeId }: Version): boolean {
  return one?.revision === revision && (one.writeId === undefined || writeId === undefined || one.writeId === writeId)
}

/** What changes without the bytes. */
function aside(object: StoredObject | undefined) {
  const { tags, acl, archive, contentType, headers, metadata, label } = object ?? {}
  return { tags, acl, archive, contentType, headers, metadata, label }
}

interface Body {
  readonly length: number
  stream(sink: ByteSink): Promise<void>
}

/** Most earlier revisions that are kept: one for each new key during the time of a deal. */
const MAX_REVISIONS = 20

/** What is known of an object that deals have. What they are is that of other bytes. */
function archiveOf({ archive, revision }: StoredObject): Archive | undefined {
  if (archive?.facts?.cid === undefined && archive?.earlierRevisions === undefined) return undefined
  return { earlierRevisions: [...(archive.earlierRevisions ?? []), revision].slice(-MAX_REVISIONS) }
}

/** All that is known of the object stays, but for its deals: they have other bytes. */
async function putAgain(
  store: Pick<Store, 'partChecksums' | 'put'>,
  object: StoredObject,
  sealed: Encrypted,
  event: Cause,
  { length, stream }: Body,
): Promise<void> {
  const { bucket, key, size, etag, revision, writeId, contentType, headers, metadata, label } = object
  const { checksum, partSizes, tags, authorized } = object
  const acl = aclToKeep(object)
  const archive = archiveOf(object)
  const partChecksums = await store.partChecksums(object)
  await store.put({
    ...{ bucket, key, sealed, etag, event, maxBytes: length },
    attributes: { contentType, headers, metadata, ...(label !== undefined && { label }) },
    source: {
      length,
      async stream(sink) {
        await stream(sink)
        return { size }
      },
    },
    precondition(current) {
      if (!isSame(current, { revision, writeId }) || !isDeepStrictEqual(aside(current), aside(object)))
        throw new S3Error('PreconditionFailed')
    },
    ...(checksum && { checksum }),
    ...(partSizes && { partSizes }),
    ...(partChecksums && { partChecksums }),
    ...(tags && { tags }),
    ...(acl && { acl }),
    ...(archive && { archive }),
    ...(authorized && { authorized }),
    lock: lockToKeep(object),
  })
}

/** In a bucket with versions, the rewrapped object is a new one: locked as the one before, which stays. */
function lockToKeep({ lock }: StoredObject): ObjectLock | undefined {
  if (lock?.until === undefined || lock.until > Date.now()) return lock
  return lock.hold && { hold: true }
}

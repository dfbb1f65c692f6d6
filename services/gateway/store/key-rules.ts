import type { Database } from '../../store/database.js'
import { type Identity, owns, refusalOf } from '../access.js'
import type { Names } from '../brand.js'
import { GatewayError } from '../errors.js'
import type { QuirkName } from '../quirks.js'
import type { BucketRow, Buckets } from './buckets.js'
import type { Objects } from './objects.js'
import { above, justAfter } from './scan.js'

const SLASH = 0x2f
const slash = Buffer.from('/')
const MAX_ELEMENT_BYTES = 255

/**
 * How a folder object is stored: as any other object, as a directory of one file system, or beside the directory as
 * MinIO does on several drives.
 */
type FolderKind = 'object' | 'directory' | 'erasure'

/**
 * Suffix that replaces the final slash of a folder object on several drives (MinIO cmd/object-api-utils.go,
 * `globalDirSuffix`).
 */
const ERASURE_SUFFIX = '__XLDIR__'

interface KeyTables {
  readonly buckets: Buckets
  readonly objects: Objects
}

/** Applies the quirks about keys and `moving-creation-date`. Without them every key is allowed and no date moves. */
export class KeyRules {
  /** True when a change of one key depends on others, or changes them. */
  readonly concernOthers: boolean
  readonly #strict: boolean
  readonly #folders: FolderKind
  readonly #namedClashes: boolean
  readonly #moving: boolean

  constructor(quirks: ReadonlySet<QuirkName>) {
    this.#strict = quirks.has('strict-keys')
    this.#folders = quirks.has('erasure-folders') ? 'erasure' : quirks.has('folder-prefixes') ? 'directory' : 'object'
    this.#namedClashes = quirks.has('folder-clash-texts')
    this.#moving = quirks.has('moving-creation-date')
    this.concernOthers = this.#strict || this.#folders === 'directory' || this.#moving
  }

  /** Throws for a key that a file system could not store beside the existing ones (MinIO cmd/fs-v1.go). */
  async mayPut({ objects }: KeyTables, { id, name }: BucketRow, key: Buffer, size: number): Promise<void> {
    if (!this.#strict) return
    if (!isFileName(key)) throw new GatewayError('NoSuchKey')
    const isFolder = key.at(-1) === SLASH
    if (isFolder && size > 0) throw new GatewayError('NoSuchKey')
    for (let at = key.indexOf(SLASH); at >= 0 && at < key.length; at = key.indexOf(SLASH, at + 1)) {
      const parent = key.subarray(0, at)
      if ((await objects.find(id, parent)) !== undefined) throw this.#clash('ParentIsObject', name, parent)
    }
    if (isFolder) return
    const beneath = Buffer.concat([key, slash])
    if (await objects.anyWithin(id, beneath, above(beneath))) throw this.#clash('IsFolder', name, key)
  }

  #clash(kind: 'ParentIsObject' | 'IsFolder', bucket: string, key: Buffer): GatewayError {
    if (!this.#namedClashes) return new GatewayError(kind)
    const value = `${bucket}/${key}`
    return new GatewayError(kind === 'IsFolder' ? 'PrefixDenied' : 'ParentNamed', { value })
  }

  /**
   * Yields the folder objects above a removed key that are empty now, innermost first: a gateway on a file system
   * removes empty parents with the last file in them (MinIO cmd/fs-v1-helpers.go, `deleteFile`).
   */
  async *emptiedFolders({ objects }: KeyTables, bucket: number, key: Buffer): AsyncGenerator<Buffer> {
    if (this.#folders === 'erasure' || !(this.#strict || this.#folders === 'directory')) return
    for (let at = key.lastIndexOf(SLASH, -2); at > 0; at = key.subarray(0, at).lastIndexOf(SLASH)) {
      const folder = key.subarray(0, at + 1)
      if (await objects.anyWithin(bucket, Buffer.concat([folder, Buffer.from([0])]), above(folder))) return
      yield folder
    }
  }

  /**
   * Returns the key that a name in web.RemoveObject stands for, or undefined when the method ignores objects of that
   * name.
   */
  removable(name: string): Buffer | undefined {
    if (this.#folders === 'directory' && name.endsWith('/')) return undefined
    const isFolder = this.#folders === 'erasure' && name.endsWith(ERASURE_SUFFIX)
    return Buffer.from(isFolder ? `${name.slice(0, -ERASURE_SUFFIX.length)}/` : name)
  }

  /** True for a folder object that downloads do not find: as a directory it is an object only while it is empty. */
  async isHidden({ objects }: KeyTables, bucket: number, key: Buffer): Promise<boolean> {
    if (this.#folders !== 'directory' || key.at(-1) !== SLASH) return false
    return objects.anyWithin(bucket, justAfter(key), above(key))
  }

  /** Records that an object of this key is added or removed. Call it while the index does not hold the object. */
  async entryChanged({ buckets, objects }: KeyTables, bucket: number, key: Buffer, when: string): Promise<void> {
    if (!this.#moving) return
    const at = key.indexOf(SLASH)
    if (at >= 0) {
      const folder = key.subarray(0, at + 1)
      if (await objects.anyWithin(bucket, folder, above(folder))) return
    }
    await buckets.touch(bucket, when)
  }
}

/** True when a file system accepts the key as a path unchanged. */
function isFileName(key: Buffer): boolean {
  if (key[0] === SLASH || key.includes('\\') || key.includes('//') || key.includes(0)) return false
  let elementStart = 0
  while (elementStart <= key.length) {
    const found = key.indexOf(SLASH, elementStart)
    const elementEnd = found < 0 ? key.length : found
    if (elementEnd - elementStart > MAX_ELEMENT_BYTES) return false
    elementStart = elementEnd + 1
  }
  return true
}

interface NameContext {
  readonly names: Names
}

interface BucketTables {
  readonly buckets: Buckets
}

interface BucketContext extends NameContext {
  readonly db: Database<BucketTables>
}

const LABEL = '[a-z0-9](?:[a-z0-9-]*[a-z0-9])?'
const NAME = new RegExp(`^(?=.{3,63}$)${LABEL}(?:\\.${LABEL})*$`)
const IPV4 = /^\d+\.\d+\.\d+\.\d+$/

/**
 * Throws GatewayError InvalidBucketName for a name that public gateways refuse, by the rules of
 * https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html, and for the gateway's own path.
 */
export function checkBucketName(context: NameContext, bucket: string): void {
  if (!NAME.test(bucket) || IPV4.test(bucket) || bucket === context.names.path) {
    throw new GatewayError('InvalidBucketName', { bucket })
  }
}

/**
 * Returns the bucket that was found by this name. Throws GatewayError when the name is invalid or there is no such
 * bucket.
 */
export function mustBeBucket(context: NameContext, bucket: string, found: BucketRow | undefined): BucketRow {
  if (found !== undefined) return found
  checkBucketName(context, bucket)
  throw new GatewayError('NoSuchBucket', { bucket })
}

/**
 * Returns the bucket of this name, for what only the owner may do. Throws as `mustBeBucket` does, and GatewayError for
 * any other caller.
 * @param tables those of the transaction in which it is to be done; default: the last committed state
 */
export async function mustOwnBucket(
  context: BucketContext,
  identity: Identity,
  bucket: string,
  { buckets }: BucketTables = context.db.read,
): Promise<BucketRow> {
  const row = mustBeBucket(context, bucket, await buckets.find(bucket))
  if (!owns(identity, row)) throw refusalOf(identity)
  return row
}

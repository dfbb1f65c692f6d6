import { GatewayError } from '../errors.js'
import type { BucketRow } from '../store/buckets.js'
import type { KeyRules } from '../store/key-rules.js'
import { above, justAfter } from '../store/scan.js'
import { LegacyError } from './errors.js'
import type { QuirkName } from './quirks.js'

type Tables = Parameters<KeyRules['isHidden']>[0]

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

/** Keys as a gateway on a file system has them, as far as its quirks go, and the date that moves with them. */
export class FolderKeys implements KeyRules {
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
  async mayPut({ objects }: Tables, { id, name }: BucketRow, key: Buffer, size: number): Promise<void> {
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
    if (!this.#namedClashes) return new LegacyError(kind)
    const value = `${bucket}/${key}`
    return new LegacyError(kind === 'IsFolder' ? 'PrefixDenied' : 'ParentNamed', { value })
  }

  /**
   * Yields the folder objects above a removed key that are empty now: a gateway on a file system removes empty parents
   * with the last file in them (MinIO cmd/fs-v1-helpers.go, `deleteFile`).
   */
  async *emptiedFolders({ objects }: Tables, bucket: number, key: Buffer): AsyncGenerator<Buffer> {
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
  async isHidden({ objects }: Tables, bucket: number, key: Buffer): Promise<boolean> {
    if (this.#folders !== 'directory' || key.at(-1) !== SLASH) return false
    return objects.anyWithin(bucket, justAfter(key), above(key))
  }

  async entryChanged({ buckets, objects }: Tables, bucket: number, key: Buffer, when: string): Promise<void> {
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

/** How a file system treats a prefix (MinIO cmd/object-api-input-checks.go). Throws GatewayError when it is no path. */
export function listStrictly(bucket: string, prefix: string): 'nothing' | 'level' {
  if (prefix === '/') return 'nothing'
  const bad = prefix
    .split('/')
    .some((element, index, all) => element === '.' || element === '..' || (element === '' && index < all.length - 1))
  if (bad || prefix.includes('\\')) throw new LegacyError('InvalidListPrefix', { bucket, value: prefix })
  return 'level'
}

/** Cleans a path without dots as path.Clean of Go does. */
export function clean(path: string): string {
  return path.replace(/\/{2,}/g, '/').replace(/(.)\/$/, '$1')
}

/** True when a path element is `.` or `..`, which MinIO refuses before routing (cmd/generic-handlers.go). */
export function hasBadComponents(path: string): boolean {
  if (!path.includes('.') && !/%2e/i.test(path)) return false
  return path
    .replace(/%2e/gi, '.')
    .replace(/%2f/gi, '/')
    .split('/')
    .some((element) => element === '.' || element === '..')
}

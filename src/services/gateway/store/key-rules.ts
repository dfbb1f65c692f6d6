import { GatewayError } from '../errors.js'
import type { QuirkName } from '../quirks.js'
import type { Buckets } from './buckets.js'
import type { Objects } from './objects.js'
import { above } from './scan.js'

const SLASH = 0x2f
const slash = Buffer.from('/')
const MAX_ELEMENT_BYTES = 255

/** What the quirks `strict-keys` and `moving-creation-date` ask of the index; without them every key goes and nothing moves. */
export class KeyRules {
  readonly #strict: boolean
  readonly #moving: boolean
  readonly #buckets: Buckets
  readonly #objects: Objects

  constructor(quirks: ReadonlySet<QuirkName>, buckets: Buckets, objects: Objects) {
    this.#strict = quirks.has('strict-keys')
    this.#moving = quirks.has('moving-creation-date')
    this.#buckets = buckets
    this.#objects = objects
  }

  /** Refuses what a file system could not hold beside what is there (MinIO cmd/fs-v1.go). */
  mayPut(bucket: number, key: Buffer, size: number): void {
    if (!this.#strict) return
    if (!isFileName(key)) throw new GatewayError('NoSuchKey')
    const isFolder = key.at(-1) === SLASH
    if (isFolder && size > 0) throw new GatewayError('NoSuchKey')
    for (let at = key.indexOf(SLASH); at >= 0 && at < key.length; at = key.indexOf(SLASH, at + 1)) {
      if (this.#objects.find(bucket, key.subarray(0, at)) !== undefined) throw new GatewayError('ParentIsObject')
    }
    if (isFolder) return
    const beneath = Buffer.concat([key, slash])
    if (this.#objects.anyWithin(bucket, beneath, above(beneath))) throw new GatewayError('IsFolder')
  }

  /**
   * The folder objects above a key that has gone which hold nothing any more, innermost first: a file system's gateway removes empty parents with the
   * last file in them (MinIO cmd/fs-v1-helpers.go, `deleteFile`).
   */
  *emptiedFolders(bucket: number, key: Buffer): Generator<Buffer> {
    if (!this.#strict) return
    for (let at = key.lastIndexOf(SLASH, -2); at > 0; at = key.subarray(0, at).lastIndexOf(SLASH)) {
      const folder = key.subarray(0, at + 1)
      if (this.#objects.anyWithin(bucket, Buffer.concat([folder, Buffer.from([0])]), above(folder))) return
      yield folder
    }
  }

  /** An object of this key came or goes; to be called while it is not in the index. */
  entryChanged(bucket: number, key: Buffer, when: string): void {
    if (!this.#moving) return
    const at = key.indexOf(SLASH)
    if (at >= 0) {
      const folder = key.subarray(0, at + 1)
      if (this.#objects.anyWithin(bucket, folder, above(folder))) return
    }
    this.#buckets.touch(bucket, when)
  }
}

/** True when the key, as a path, is one a file system takes as it is. */
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

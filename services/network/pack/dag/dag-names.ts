import { createHash } from 'node:crypto'
import { compareUtf8 } from '../../../../common/byte-order.js'

/** Longest file name on the file systems that a deal may be unpacked to, bytes of UTF-8. */
const MAX_NAME_BYTES = 255

/** Characters of a replaced name that are kept for readers. */
const KEPT_CHARACTERS = 40

/** Suffix of stand-in names. */
const STAND_IN = /~(?:file|folder)-[0-9a-f]{64}$/

/**
 * Maps the key of an object to its path in the DAG of its bucket. The key is split at each `/`: all parts but the last
 * name directories, the last one names the file. Parts stay unchanged, except that
 * - a part that no directory can hold (empty, `.`, `..`, more than 255 bytes, with a NUL, malformed UTF-16), and one
 * that looks like a stand-in, and
 * - a directory whose path, without its closing `/`, is itself the key of an object
 * are replaced by a stand-in: up to 40 characters of the part, `~file-` or `~folder-`, and the SHA-256 of the part's
 * UTF-16LE in hex. Two keys of a bucket therefore never get the same path, nor one the path of a directory of the
 * other.
 * @param isKey whether the deal has an object with this key; called with the key's own prefixes that end before a `/`.
 *   Only the key matters: both `a/b` and `a/b/c` are ordinary, and which of them is replaced can depend only on whether
 *   the other exists.
 */
export function dagNames(key: string, isKey: (prefix: string) => boolean): string[] {
  const names: string[] = []
  let start = 0
  for (let end = key.indexOf('/'); end !== -1; end = key.indexOf('/', start)) {
    const part = key.slice(start, end)
    names.push(fits(part) && !isKey(key.slice(0, end)) ? part : standIn(part, 'folder'))
    start = end + 1
  }
  const part = key.slice(start)
  names.push(fits(part) ? part : standIn(part, 'file'))
  return names
}

/**
 * `dagNames` for all keys of a deal in S3's order, that of their UTF-8 bytes. In this order the keys that affect a key
 * precede it, and the files of one directory are consecutive. Holds the last keys that are prefixes of each other, at
 * most 1024.
 * @throws when a key does not sort behind the previous one
 */
export function dagNamesInOrder(): (key: string) => string[] {
  const beginnings: string[] = []
  const known = new Set<string>()
  let previous: string | undefined
  return (key) => {
    if (previous !== undefined && compareUtf8(previous, key) >= 0) {
      throw new Error(`The key ${JSON.stringify(key)} came after ${JSON.stringify(previous)}.`)
    }
    previous = key
    for (let last = beginnings.at(-1); last !== undefined && !key.startsWith(last); last = beginnings.at(-1)) {
      beginnings.pop()
      known.delete(last)
    }
    const names = dagNames(key, (prefix) => known.has(prefix))
    beginnings.push(key)
    known.add(key)
    return names
  }
}

function fits(part: string): boolean {
  return (
    part !== '' &&
    part !== '.' &&
    part !== '..' &&
    !part.includes('\0') &&
    part.isWellFormed() &&
    Buffer.byteLength(part) <= MAX_NAME_BYTES &&
    !STAND_IN.test(part)
  )
}

function standIn(part: string, kind: 'file' | 'folder'): string {
  const readable = part.toWellFormed().replaceAll('\0', '_').slice(0, KEPT_CHARACTERS).toWellFormed()
  const digest = createHash('sha256').update(part, 'utf16le').digest('hex')
  return `${readable}~${kind}-${digest}`
}

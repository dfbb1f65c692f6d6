import { createHash } from 'node:crypto'
import type { CID } from 'multiformats/cid'
import { compareUtf8 } from '../../../../common/byte-order.js'
import { type DirectoryEntry, directoryEntry, entryOf, putDirectory, type ReadBlock } from './directory.js'
import { type BlockSink, type DagNode, notRetrievable, readNode, type UnixfsNode } from './unixfs.js'

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

interface OpenDirectory {
  readonly name: string
  readonly entries: Map<string, DirectoryEntry>
}

/**
 * Builds the directories above the files as the files arrive. A directory is kept in memory until a file outside of it
 * arrives; then it is written, and only its node is kept. The files of one directory, including its sub-directories,
 * must therefore be consecutive. Holds about 250 bytes and the name per entry of the open directories.
 */
export class DagTree {
  readonly #blocks: BlockSink
  /** From the root to the directory of the last file. */
  readonly #open: OpenDirectory[] = [{ name: '', entries: new Map() }]

  constructor(blocks: BlockSink) {
    this.#blocks = blocks
  }

  /** @throws when a name is invalid in a directory, exists already, or lies in a completed directory */
  async add(path: readonly string[], node: DagNode): Promise<void> {
    const name = path.at(-1)
    if (name === undefined) throw new Error('A file in a directory must have a name.')
    for (const part of path) checkName(part)
    const directory = await this.#enter(path)
    if (directory.entries.has(name)) throw new Error(`Two files of a deal have the path ${show(path)}.`)
    directory.entries.set(name, directoryEntry(name, node))
  }

  /**
   * Writes the open directories.
   * @returns the root
   */
  async close(): Promise<DagNode> {
    while (this.#open.length > 1) await this.#leave()
    return putDirectory([...this.#current.entries.values()], this.#blocks)
  }

  get #current(): OpenDirectory {
    const directory = this.#open.at(-1)
    if (directory === undefined) throw new Error('The root is always open.')
    return directory
  }

  async #enter(path: readonly string[]): Promise<OpenDirectory> {
    const depth = path.length - 1
    let common = 0
    while (common < depth && this.#open[common + 1]?.name === path[common]) common++
    while (this.#open.length > common + 1) await this.#leave()
    for (let level = common; level < depth; level++) {
      const name = path[level] ?? ''
      if (this.#current.entries.has(name)) {
        throw new Error(
          `${show(path.slice(0, level + 1))} is a file of the deal, or a directory whose files do not come together.`,
        )
      }
      this.#open.push({ name, entries: new Map() })
    }
    return this.#current
  }

  async #leave(): Promise<void> {
    const left = this.#open.pop()
    if (left === undefined) return
    const node = await putDirectory([...left.entries.values()], this.#blocks)
    this.#current.entries.set(left.name, directoryEntry(left.name, node))
  }
}

function checkName(name: string): void {
  if (name === '' || name === '.' || name === '..' || /[/\0]/.test(name) || !name.isWellFormed()) {
    throw new Error(`A directory cannot hold the name ${JSON.stringify(name)}.`)
  }
}

const show = (path: readonly string[]): string => JSON.stringify(path.join('/'))

export interface Resolved {
  readonly cid: CID
  readonly node: UnixfsNode
  /** The root, and what each name of the path leads to. */
  readonly roots: readonly CID[]
  /** The blocks above it: directories and their shards. */
  readonly above: readonly CID[]
}

/** Follows names from a root. Throws NetworkError NotRetrievable when there is no such link. */
export async function resolvePath(root: CID, names: readonly string[], block: ReadBlock): Promise<Resolved> {
  const roots = [root]
  const above: CID[] = []
  let cid = root
  let node = readNode(cid, await block(cid))
  for (const name of names) {
    const found = await entryOf(node, name, block)
    if (found === undefined) throw notRetrievable(`There is no link ${JSON.stringify(name)} in ${cid}.`)
    above.push(cid, ...found.shards)
    cid = found.link.cid
    node = readNode(cid, await block(cid))
    roots.push(cid)
  }
  return { cid, node, roots, above }
}

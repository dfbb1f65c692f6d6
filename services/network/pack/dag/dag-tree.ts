import type { CID } from 'multiformats/cid'
import { type DirectoryEntry, directoryEntry, entryOf, putDirectory, type ReadBlock } from './directory.js'
import { type BlockSink, type DagNode, notRetrievable, readNode, type UnixfsNode } from './unixfs.js'

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

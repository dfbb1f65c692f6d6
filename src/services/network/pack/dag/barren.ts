import type { CID } from 'multiformats/cid'
import { notRetrievable } from './file-node.js'

/** Blocks that are read for one piece of a true file or directory: fewer than it has levels. */
const MOST = 1000

/**
 * Counts the blocks that are read one after another without anything for the reader. A DAG of a few blocks that others
 * made can have more paths than anything can walk, and none of them may lead to a byte.
 */
export class Barren {
  readonly #root: CID
  #blocks = 0

  constructor(root: CID) {
    this.#root = root
  }

  /** Call it before each block. Throws NetworkError NotRetrievable. */
  read(): void {
    if (++this.#blocks > MOST) throw notRetrievable(`The DAG of ${this.#root} has too many paths to nothing.`)
  }

  /** The reader gets something. */
  found(): void {
    this.#blocks = 0
  }
}

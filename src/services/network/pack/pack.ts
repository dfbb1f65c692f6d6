import { resolve } from 'node:path'
import { setImmediate as othersTurn } from 'node:timers/promises'
import type { DealFile } from '../network.js'
import type { Pack, PackOptions } from '../packing.js'
import { abortable } from './abortable.js'
import { CarFile } from './car-file.js'
import { DagTree } from './dag-tree.js'
import { type BlockSink, type DagNode, putFile } from './unixfs.js'

/** Progress is told after this many bytes, and after each file. */
const PROGRESS_BYTES = 1024 * 1024

/** Takes some milliseconds when they are small: these need nothing of the disk, and nobody else would have a turn. */
const FILES_AT_ONCE = 16

/**
 * Beside about 25 MiB for the blocks on their way, this holds about 400 bytes and the name for each entry of the directories from the root to the file at hand,
 * and nothing for those that were left.
 */
export const pack: Pack = async (files, options) => {
  const file = resolve(options.target)
  options.signal?.throwIfAborted()
  const car = await CarFile.create(file)
  try {
    const root = await packInto(car, files, options)
    return { file, dataCid: root.cid.toString(), size: await car.finish(root.cid) }
  } catch (error) {
    await car.discard()
    throw error
  }
}

async function packInto(blocks: BlockSink, files: AsyncIterable<DealFile>, options: PackOptions): Promise<DagNode> {
  const tree = new DagTree(blocks)
  const progress = new Progress(options)
  let root: DagNode | undefined
  for await (const file of abortable(files, options.signal)) {
    if (root !== undefined || (file.path.length === 0 && progress.files > 0)) {
      throw new Error('A file that is the root of a deal has no other beside it.')
    }
    const node = await putFile(exactly(file, progress, options.signal), blocks)
    if (file.path.length > 0) await tree.add(file.path, node)
    else root = node
    await options.onFile({ path: file.path, size: file.size, cid: node.cid.toString() })
    progress.file()
    if (progress.files % FILES_AT_ONCE === 0) await othersTurn()
  }
  options.signal?.throwIfAborted()
  return root ?? (await tree.close())
}

async function* exactly(file: DealFile, progress: Progress, signal?: AbortSignal): AsyncIterable<Uint8Array> {
  let length = 0
  for await (const chunk of abortable(file.content(), signal)) {
    length += chunk.length
    if (length > file.size) throw wrongLength(file, 'longer')
    progress.bytes(chunk.length)
    yield chunk
  }
  if (length < file.size) throw wrongLength(file, 'shorter')
}

const wrongLength = ({ path, size }: DealFile, how: string): Error =>
  new Error(`The content of ${JSON.stringify(path.join('/'))} is ${how} than the ${size} bytes it was said to have.`)

class Progress {
  readonly #tell: PackOptions['onProgress']
  #bytes = 0
  #told = 0
  files = 0

  constructor({ onProgress }: PackOptions) {
    this.#tell = onProgress
  }

  bytes(count: number): void {
    this.#bytes += count
    if (this.#bytes - this.#told >= PROGRESS_BYTES) this.#say()
  }

  file(): void {
    this.files++
    this.#say()
  }

  #say(): void {
    this.#told = this.#bytes
    this.#tell?.(this.#bytes, this.files)
  }
}

import { resolve } from 'node:path'
import { setImmediate as othersTurn } from 'node:timers/promises'
import type { DealFile } from '../network.js'
import type { Pack, PackOptions } from '../packing.js'
import { abortable } from './abortable.js'
import { carInOrder } from './car/car-in-order.js'
import { DagTree } from './dag/dag-tree.js'
import { type BlockSink, type DagNode, putFile } from './dag/unixfs.js'

/** Progress is reported after this many bytes, and after each file. */
const PROGRESS_BYTES = 1024 * 1024

/**
 * Small files take some milliseconds for a batch. They need no disk access, so the event loop would not get a turn
 * without this bound.
 */
const FILES_AT_ONCE = 16

/** Besides the memory of `carInOrder`, this holds about 25 MiB for blocks in flight, and that of `DagTree`. */
export const pack: Pack = async (files, options) => {
  const file = resolve(options.target)
  const build = (blocks: BlockSink): Promise<DagNode> => packInto(blocks, files, options)
  const { root, size } = await carInOrder(file, build, 1, options.signal)
  return { file, dataCid: root.toString(), size }
}

async function packInto(blocks: BlockSink, files: AsyncIterable<DealFile>, options: PackOptions): Promise<DagNode> {
  const tree = new DagTree(blocks)
  const progress = new Progress(options)
  let root: DagNode | undefined
  for await (const file of abortable(files, options.signal)) {
    if (root !== undefined || (file.path.length === 0 && progress.files > 0)) {
      throw new Error('A file that is the root of a deal must be its only file.')
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
  new Error(`The content of ${JSON.stringify(path.join('/'))} is ${how} than the declared ${size} bytes.`)

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

import { resolve } from 'node:path'
import { setImmediate as othersTurn } from 'node:timers/promises'
import { CID } from 'multiformats/cid'
import type { DealFile, Pack, PackOptions } from '../network.js'
import { abortable } from './car/car-file.js'
import { carFileOf, carInOrder, copyInOrder } from './car/car-in-order.js'
import { openCar } from './car/car-indexes.js'
import { rootsOf } from './car/car-sections.js'
import { DagTree } from './dag/dag-tree.js'
import { requireNames } from './dag/directory.js'
import { type BlockSink, DAG_PB, type DagNode, digestOf, notRetrievable, putFile, readNode } from './dag/unixfs.js'

/** Progress is reported after this many bytes, and after each file. */
const PROGRESS_BYTES = 1024 * 1024

/**
 * Small files take some milliseconds for a batch. They need no disk access, so the event loop would not get a turn
 * without this bound.
 */
const FILES_PER_TURN = 16

/**
 * Packs files as a CAR. Besides the memory of `carInOrder`, this holds about 25 MiB for blocks in flight, and that of
 * `DagTree`.
 */
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
    if (progress.files % FILES_PER_TURN === 0) await othersTurn()
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
  readonly #onProgress: PackOptions['onProgress']
  #bytes = 0
  #reported = 0
  files = 0

  constructor({ onProgress }: PackOptions) {
    this.#onProgress = onProgress
  }

  bytes(count: number): void {
    this.#bytes += count
    if (this.#bytes - this.#reported >= PROGRESS_BYTES) this.#say()
  }

  file(): void {
    this.files++
    this.#say()
  }

  #say(): void {
    this.#reported = this.#bytes
    this.#onProgress?.(this.#bytes, this.files)
  }
}

/** One content on the disk, as `ipfs add` stores it. */
export interface PackedContent {
  /** CIDv0: `Qm...` */
  readonly cid: string
  readonly size: number
  readonly carSize: number
}

/**
 * Packs one content of unknown length into a CAR in the profile `unixfs-v0-2015`, so that its CID is that of `ipfs
 * add`.
 * @param target path of the CAR: replaced if it exists, durable when packing resolves, removed when it rejects
 */
export async function packContent(
  content: AsyncIterable<Uint8Array>,
  target: string,
  signal?: AbortSignal,
): Promise<PackedContent> {
  let size = 0
  async function* counted(): AsyncIterable<Uint8Array> {
    for await (const chunk of abortable(content, signal)) {
      size += chunk.length
      yield chunk
    }
  }
  const car = await carInOrder(resolve(target), (blocks) => putFile(counted(), blocks, 'unixfs-v0-2015'), 0, signal)
  return { cid: car.root.toString(), size, carSize: car.size }
}

/** Some 60 MiB of links. Directories of a million entries have fewer, because their shards have 256. */
const MAX_AHEAD = 200_000

/**
 * Takes a directory from a CAR that a client made: one root, which is a directory of UnixFS, and all that it links to.
 * Each block is hashed, and what the root does not lead to is left out, so that a DAG has the same CAR from every
 * client. The content is this CAR.
 * @param received path of the CAR of the client
 * @param target path of the CAR: replaced if it exists, durable when copying resolves, removed when it rejects
 * @throws NetworkError NotRetrievable for anything else
 */
export async function copyDirectory(received: string, target: string, signal: AbortSignal): Promise<PackedContent> {
  const root = await rootOf(received)
  const size = await carFileOf(resolve(target), 0, async (car) => {
    const check = (cid: CID, block: Uint8Array): void => checkNode(cid, block, cid.equals(root))
    await copyInOrder(received, root, car, signal, { check, mostAhead: MAX_AHEAD })
    return car.finish(root)
  })
  return { cid: root.toString(), size, carSize: size }
}

async function rootOf(file: string): Promise<CID> {
  const handle = await openCar(file)
  try {
    const [root, ...others] = await rootsOf(handle)
    if (root === undefined || others.length > 0) throw notRetrievable('The CAR must have one root.')
    digestOf(root)
    if (root.code !== DAG_PB) throw notRetrievable('The root of the CAR must be a directory.')
    return root.version === 0 ? root : CID.createV0(root.multihash as never)
  } finally {
    await handle.close()
  }
}

function checkNode(cid: CID, block: Uint8Array, isRoot: boolean): void {
  const node = readNode(cid, block)
  const isDirectory = node.kind === 'directory' || node.kind === 'shard'
  if (isRoot && !isDirectory) throw notRetrievable('The root of the CAR must be a directory.')
  if (isDirectory) requireNames(cid, node.links, node.kind === 'shard')
}

import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { CarWriter } from '@ipld/car'
import * as pb from '@ipld/dag-pb'
import { UnixFS } from 'ipfs-unixfs'
import { CID } from 'multiformats/cid'
import * as raw from 'multiformats/codecs/raw'
import { sha256 } from 'multiformats/hashes/sha2'
import type { Test } from 'tap'
import { carInOrder } from '../../../services/network/pack/car/car-in-order.js'
import { DagTree } from '../../../services/network/pack/dag/dag-tree.js'
import { type DagNode, putFile } from '../../../services/network/pack/dag/unixfs.js'
import { temporaryFolder } from '../../support/content/folders.js'

export const CAR_TYPE = 'application/vnd.ipld.car'

/** A CAR of a directory with these files, as `ipfs dag export` writes it; those of one directory come together. */
export async function directoryCar(
  t: Test,
  files: Readonly<Record<string, string | Uint8Array>>,
): Promise<{ readonly car: Buffer<ArrayBuffer>; readonly cid: string }> {
  const target = join(temporaryFolder(t), 'directory.car')
  const nodes = new Map<string, DagNode>()
  const { root } = await carInOrder(
    target,
    async (blocks) => {
      const tree = new DagTree(blocks)
      for (const [path, content] of Object.entries(files)) {
        const bytes = Buffer.from(content)
        const key = bytes.toString('latin1')
        const node = nodes.get(key) ?? (await putFile(one(bytes), blocks, 'unixfs-v0-2015'))
        nodes.set(key, node)
        await tree.add(path.split('/'), node)
      }
      return tree.close()
    },
    1,
  )
  return { car: await readFile(target), cid: root.toString() }
}

async function* one(bytes: Uint8Array): AsyncIterable<Uint8Array> {
  if (bytes.length > 0) yield bytes
}

export interface Block {
  readonly cid: CID
  readonly bytes: Uint8Array
}

export type Link = readonly [name: string, to: Block, size?: number]

export async function carOf(roots: CID[], blocks: Iterable<Block>): Promise<Buffer<ArrayBuffer>> {
  const { writer, out } = CarWriter.create(roots)
  const written = (async () => {
    for (const block of blocks) await writer.put(block)
    await writer.close()
  })()
  const parts: Uint8Array[] = []
  for await (const part of out) parts.push(part)
  await written
  return Buffer.concat(parts)
}

/** Any blocks, and CARs of them. */
export class Dag {
  readonly blocks = new Map<string, Block>()

  async leaf(content: string | Uint8Array): Promise<Block> {
    const bytes = Buffer.from(content)
    return this.#add(bytes, raw.code)
  }

  async node(
    type: 'file' | 'directory' | 'hamt-sharded-directory',
    links: readonly Link[],
    fanout?: bigint,
  ): Promise<Block> {
    const blockSizes = type === 'file' ? links.map(([, , size = 0]) => BigInt(size)) : undefined
    const data = new UnixFS({ type, ...(blockSizes && { blockSizes }), ...(fanout && { fanout, hashType: 0x22n }) })
    const Links = links.map(([Name, { cid }]) => ({ Name, Hash: cid, Tsize: 0 }))
    return this.#add(pb.encode({ Data: data.marshal(), Links }), pb.code)
  }

  car(root: Block): Promise<Buffer<ArrayBuffer>> {
    return carOf([root.cid], this.blocks.values())
  }

  async #add(bytes: Uint8Array, code: number): Promise<Block> {
    const block = { cid: CID.createV1(code, await sha256.digest(bytes)), bytes }
    this.blocks.set(block.cid.toString(), block)
    return block
  }
}

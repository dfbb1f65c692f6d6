import { createHash } from 'node:crypto'
import { createReadStream, readFileSync, writeFileSync } from 'node:fs'
import { CarBlockIterator, CarBufferWriter } from '@ipld/car'
import * as dagCbor from '@ipld/dag-cbor'
import { CID } from 'multiformats/cid'
import * as digest from 'multiformats/hashes/digest'
import { NetworkError } from '../../../src/services/network/network.js'
import type { Commit, Pack, ReadFromCar } from '../../../src/services/network/packing.js'

const cidOf = (codec: number, bytes: Uint8Array): CID =>
  CID.createV1(codec, digest.create(0x12, createHash('sha256').update(bytes).digest()))

/** Each file one raw block, the root a list of links. */
export const pack: Pack = async (files, { target, onFile, onProgress, signal }) => {
  const blocks: { cid: CID; bytes: Uint8Array }[] = []
  let total = 0
  for await (const file of files) {
    const parts: Uint8Array[] = []
    for await (const part of file.content()) {
      signal?.throwIfAborted()
      parts.push(part)
      total += part.length
      onProgress?.(total, blocks.length)
    }
    const bytes = Buffer.concat(parts)
    if (bytes.length !== file.size) throw new Error('The content is not as long as it said.')
    const cid = cidOf(0x55, bytes)
    blocks.push({ cid, bytes })
    await onFile({ path: file.path, size: file.size, cid: cid.toString() })
    onProgress?.(total, blocks.length)
  }
  const list = dagCbor.encode(blocks.map(({ cid }) => cid))
  const root = cidOf(0x71, list)
  const writer = CarBufferWriter.createWriter(new ArrayBuffer(total + 1000 + 100 * blocks.length), { roots: [root] })
  for (const block of blocks) writer.write(block)
  writer.write({ cid: root, bytes: list })
  const car = writer.close({ resize: true })
  signal?.throwIfAborted()
  writeFileSync(target, car)
  return { file: target, dataCid: root.toString(), size: car.length }
}

export const commit: Commit = async (file) => {
  const bytes = readFileSync(file)
  const pieceSize = 2 ** Math.max(7, Math.ceil(Math.log2((bytes.length * 128) / 127)))
  const hash = createHash('sha256').update(bytes).digest()
  return { pieceCid: CID.createV1(0xf101, digest.create(0x1012, hash)).toString(), pieceSize }
}

export const readFromCar: ReadFromCar = async function* (car, cid) {
  try {
    const blocks = await CarBlockIterator.fromIterable(createReadStream(car))
    for await (const block of blocks) {
      if (block.cid.toString() !== cid) continue
      if (cidOf(block.cid.code, block.bytes).toString() !== cid) throw new Error('not what the CID says')
      for (let at = 0; at < block.bytes.length; at += 1024) yield block.bytes.subarray(at, at + 1024)
      return
    }
    throw new Error('not there')
  } catch (cause) {
    throw new NetworkError('NotRetrievable', (cause as Error).message, { cause })
  }
}

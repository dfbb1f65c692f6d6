import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { createReadFromCar, packContent } from '../../../src/services/network/pack/index.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { CHUNK_BYTES, cidOfChunks, WIDTH } from './second-v0.js'

async function* inPieces(content: Uint8Array, length: number): AsyncIterable<Uint8Array> {
  for (let at = 0; at < content.length; at += length) yield content.subarray(at, at + length)
}

function* chunksOf(content: Uint8Array): Iterable<Uint8Array> {
  for (let at = 0; at < content.length; at += CHUNK_BYTES) yield content.subarray(at, at + CHUNK_BYTES)
}

/** Bytes of which no two chunks are the same. */
function contentOf(length: number): Buffer {
  const content = Buffer.alloc(length, 'content ')
  for (let at = 0; at + 4 <= length; at += CHUNK_BYTES) content.writeUInt32BE(at / CHUNK_BYTES, at)
  return content
}

const packed = (t: Test, content: Uint8Array, piece = 70_001) =>
  packContent(inPieces(content, piece), join(temporaryFolder(t), 'content.car'))

t.test('CIDs that are published for `ipfs add`', async (t) => {
  for (const [content, cid] of [
    ['', 'QmbFMke1KXqnYyBBWxB74N4c5SBnJMVAiMNRcGu6x1AwQH'],
    ['hello world', 'Qmf412jQZiuVUtdgnB36FXFX7xg5V6KEbSJ4dpQuhkLyfD'],
    ['hello world\n', 'QmT78zSuBmuS4z925WZfrqQ1qHaJ56DQaTfyMUF7F8ff5o'],
  ] as const) {
    const bytes = Buffer.from(content)
    t.match(await packed(t, bytes), { cid, size: bytes.length })
    t.equal(cidOfChunks(chunksOf(bytes)), cid, 'the second implementation agrees')
  }
})

for (const length of [1, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 3_000_000, WIDTH * CHUNK_BYTES + 1]) {
  t.test(`${length} bytes have the CID of a second implementation`, async (t) => {
    const content = contentOf(length)
    const file = join(temporaryFolder(t), 'content.car')
    const { cid, size, carSize } = await packContent(inPieces(content, 100_000), file)
    t.equal(cid, cidOfChunks(chunksOf(content)))
    t.equal(size, length)
    t.equal(carSize, readFileSync(file).length)
    const read: Uint8Array[] = []
    for await (const chunk of createReadFromCar()(file, cid)) read.push(chunk)
    t.ok(Buffer.concat(read).equals(content), 'the CAR has the content')
  })
}

t.test('a content that fails leaves nothing', async (t) => {
  const folder = temporaryFolder(t)
  async function* cut(): AsyncIterable<Uint8Array> {
    yield contentOf(CHUNK_BYTES * 2)
    throw new Error('cut')
  }
  await t.rejects(packContent(cut(), join(folder, 'content.car')), { message: 'cut' })
  t.same(readdirSync(folder), [])
})

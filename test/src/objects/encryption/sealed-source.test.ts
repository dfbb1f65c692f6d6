import t from 'tap'
import type { Source } from '../../../../src/api/store.js'
import { CHUNK_BYTES, NONCE_BYTES, PayloadDecrypter, payloadKey } from '../../../../src/objects/encryption/payload.js'
import { sealedLength, sealedSource } from '../../../../src/objects/encryption/sealed-source.js'
import { bytes } from '../../../support/content/content.js'

const header = { header: bytes('header', 200), fileKey: bytes('key', 16) }
const content = bytes('content', 12 * CHUNK_BYTES - 5)

const source: Source = {
  length: content.length,
  async stream(sink) {
    for (let at = 0; at < content.length; at += 50_000) await sink(content.subarray(at, at + 50_000))
    return { size: content.length }
  },
}

function opened(sealed: Buffer): Buffer {
  t.equal(sealed.length, sealedLength(header, content.length))
  t.ok(sealed.subarray(0, header.header.length).equals(header.header))
  const payload = sealed.subarray(header.header.length)
  const decrypter = new PayloadDecrypter(payloadKey(header.fileKey, payload.subarray(0, NONCE_BYTES)), payload.length)
  return Buffer.concat([...decrypter.take(payload.subarray(NONCE_BYTES))])
}

t.test('a chunk stays as it is until it is released, and its buffer serves again', async (t) => {
  const AHEAD = 3
  const held: { chunk: Buffer; release: () => void }[] = []
  const copies: Buffer[] = []
  const buffers = new Set<unknown>()
  await sealedSource(source, header).stream((chunk, release) => {
    if (!release) {
      copies.push(...held.splice(0).map(({ chunk }) => Buffer.from(chunk)), Buffer.from(chunk))
      return
    }
    buffers.add(chunk.buffer)
    held.push({ chunk, release })
    if (held.length <= AHEAD) return
    const first = held.shift()
    if (!first) return
    copies.push(Buffer.from(first.chunk))
    first.release()
    first.release()
  })
  t.equal(buffers.size, AHEAD + 1)
  t.ok(opened(Buffer.concat(copies)).equals(content))
})

import t from 'tap'
import type { GatewayObject } from '../../../../src/api/gateway.js'
import { OpenedDownload, type SealedBytes, sealedSpan } from '../../../../src/objects/encryption/opened-download.js'
import {
  CHUNK_BYTES,
  NONCE_BYTES,
  PayloadEncrypter,
  payloadLength,
  SEALED_CHUNK_BYTES,
} from '../../../../src/objects/encryption/payload.js'
import { bytes } from '../../../support/content/content.js'

const CHUNKS = 12
const HEADER = 200
const AHEAD = 3
/** Chunks that are lent in one buffer at most. */
const TOGETHER = 4

const key = bytes('key', 32)
const content = bytes('content', CHUNKS * CHUNK_BYTES - 5)
const encrypter = new PayloadEncrypter(key)
const sealed = Buffer.concat([...encrypter.take(content), encrypter.end()])
const size = HEADER + payloadLength(content.length)
const object = { size, encrypted: { algorithm: 'AES256', header: HEADER } } as GatewayObject

/** Lends the chunks in pieces, and waits for none to be returned. */
function lending(pieces: number, of = sealed): SealedBytes {
  return {
    async lend(sink) {
      const returned: Promise<void>[] = []
      for (let at = 0; at < of.length; at += pieces)
        returned.push(
          new Promise((resolve, reject) => {
            sink(of.subarray(at, at + pieces), (error) => (error === undefined ? resolve() : reject(error)))
          }),
        )
      await Promise.all(returned)
    },
    discard() {},
  }
}

const opened = (pieces: number) => new OpenedDownload(object, sealedSpan(object, undefined), key, lending(pieces))

t.test('a chunk that is lent stays as it is until it is returned, and its buffer serves again', async (t) => {
  t.equal(sealed.length, size - HEADER - NONCE_BYTES)
  for (const pieces of [1000, CHUNK_BYTES, CHUNK_BYTES + 16, sealed.length]) {
    const held: { chunk: Buffer; at: number; done: () => void }[] = []
    const buffers = new Set<unknown>()
    let at = 0
    const check = () => {
      const first = held.shift()
      if (!first) return
      const { chunk, at, done } = first
      if (!chunk.equals(content.subarray(at, at + chunk.length))) t.fail(`the chunk at ${at} has changed`)
      done()
    }
    await Promise.all([
      opened(pieces).lend((chunk, done) => {
        buffers.add(chunk.buffer)
        held.push({ chunk, at, done })
        at += chunk.length
        if (held.length > AHEAD) check()
        if (at === content.length) while (held.length > 0) check()
      }),
    ])
    t.equal(at, content.length)
    t.equal(buffers.size, pieces === sealed.length ? CHUNKS / TOGETHER : AHEAD + 1, `in pieces of ${pieces}`)
  }
})

t.test('the chunks before a damaged one are lent, and none of the others', async (t) => {
  const DAMAGED = 6
  for (const pieces of [CHUNK_BYTES, sealed.length]) {
    const altered = Buffer.from(sealed)
    altered.writeUInt8(altered.readUInt8(DAMAGED * SEALED_CHUNK_BYTES) ^ 1, DAMAGED * SEALED_CHUNK_BYTES)
    const lent: Buffer[] = []
    const download = new OpenedDownload(object, sealedSpan(object, undefined), key, lending(pieces, altered))
    const done = download.lend((chunk, done) => {
      lent.push(Buffer.from(chunk))
      done()
    })
    await t.rejects(done, { code: 'InternalError', message: /^Chunk 6 / })
    t.ok(Buffer.concat(lent).equals(content.subarray(0, DAMAGED * CHUNK_BYTES)), `in pieces of ${pieces}`)
  }
})

import { createHmac, randomBytes } from 'node:crypto'
import type { BodyOptions, ByteSink } from '../../api/request.js'
import type { Source } from '../../api/store.js'
import type { NewHeader } from './age-header.js'
import { BufferPool } from './buffer-pool.js'
import { NONCE_BYTES, PayloadEncrypter, payloadKey, payloadLength, SEALED_CHUNK_BYTES } from './payload.js'

/**
 * The source as an age file. Its facts are those of the content: size, digests and checksums. The last chunk follows
 * once the content is verified.
 */
export function sealedSource(source: Source, { header, fileKey }: NewHeader): Source {
  return sealed(source, header, fileKey)
}

/** The length of the age file that `size` bytes become. */
export function sealedLength({ header }: NewHeader, size: number): number {
  return header.length + payloadLength(size)
}

/**
 * The source as the payload of an age file whose header lies elsewhere: a part of an upload.
 * @param secret its MD5 is one that only holders of the key compute: it does not show what the content is
 */
export function sealedPart(source: Source, key: Buffer, secret = false): Source {
  const part = sealed(source, Buffer.alloc(0), key)
  if (!secret) return part
  return {
    length: part.length,
    async stream(sink, options) {
      const facts = await part.stream(sink, options)
      return { ...facts, ...(facts.md5 && { md5: createHmac('md5', key).update(facts.md5).digest() }) }
    },
  }
}

function sealed(source: Source, header: Buffer, fileKey: Buffer): Source {
  return {
    length: source.length === undefined ? undefined : header.length + payloadLength(source.length),
    async stream(sink, options: BodyOptions = {}) {
      const nonce = randomBytes(NONCE_BYTES)
      const key = payloadKey(fileKey, nonce)
      const encrypter = new PayloadEncrypter(key)
      const pool = new BufferPool(SEALED_CHUNK_BYTES, 1)
      const pass: ByteSink = (chunk) => sink(chunk, pool.lending(chunk))
      try {
        await sink(Buffer.concat([header, nonce]))
        const facts = await source.stream((bytes) => passAll(encrypter.take(bytes, pool.take), pass), options)
        await sink(encrypter.end())
        return facts
      } finally {
        key.fill(0)
      }
    },
  }
}

/** Passes chunks to a sink. Waits only where the sink does. */
export function passAll(
  chunks: Iterator<Buffer, void>,
  sink: (chunk: Buffer) => void | Promise<void>,
): void | Promise<void> {
  for (let next = chunks.next(); !next.done; next = chunks.next()) {
    const waiting = sink(next.value)
    if (waiting) return waiting.then(() => passAll(chunks, sink))
  }
}

import { S3Error } from '../../../common/errors/s3-error.js'
import type { ByteRange, Download, GatewayObject } from '../../api/gateway.js'
import type { ByteSink, LentSink } from '../../api/request.js'
import { resolveRange } from '../../gateway/objects/download-body.js'
import { BufferPool } from './buffer-pool.js'
import { CHUNK_BYTES, NONCE_BYTES, PayloadDecrypter, payloadKey, SEALED_CHUNK_BYTES, sizeInPayload } from './payload.js'
import { passAll } from './sealed-source.js'

/** The part of a stored object that holds a range of its content. */
export interface SealedSpan {
  /** Positions in the content; `last` is `first - 1` for an empty one. */
  readonly first: number
  readonly last: number
  /** The chunks that hold it. */
  readonly firstChunk: number
  readonly lastChunk: number
  /** Positions in the stored object. */
  readonly stored: { readonly first: number; readonly last: number }
}

/** The size of the content; undefined for an object that is no whole age file. */
export function contentSize({ size, encrypted }: Pick<GatewayObject, 'size' | 'encrypted'>): number | undefined {
  return encrypted && sizeInPayload(size - encrypted.header)
}

/** Throws S3Error InvalidRange, and InternalError for an object that was cut. */
export function sealedSpan(
  { size, encrypted }: Pick<GatewayObject, 'size' | 'encrypted'>,
  range: ByteRange | undefined,
): SealedSpan {
  const content = contentSize({ size, encrypted })
  if (content === undefined || !encrypted) throw new S3Error('InternalError', { message: CUT })
  const { first, last } = resolveRange(range, content)
  const firstChunk = Math.floor(first / CHUNK_BYTES)
  const lastChunk = Math.max(firstChunk, Math.floor(last / CHUNK_BYTES))
  const chunks = encrypted.header + NONCE_BYTES
  const end = Math.min(chunks + (lastChunk + 1) * SEALED_CHUNK_BYTES, size)
  return {
    first,
    last,
    firstChunk,
    lastChunk,
    stored: { first: chunks + firstChunk * SEALED_CHUNK_BYTES, last: end - 1 },
  }
}

const CUT = 'The encrypted object is damaged: it is not as long as it was.'

/** Some bytes of a download first, and the others later. */
export class SplitDownload {
  readonly head: Promise<Buffer>
  #done!: Promise<void>
  #sink: LentSink | undefined
  /** What was lent before the rest was asked for. */
  #waiting: Parameters<LentSink>[] = []

  /** @param length of the head, which is shorter than the download */
  constructor(download: Pick<Download, 'lend'>, length: number) {
    let missing = length
    const parts: Buffer[] = []
    this.head = new Promise((resolve, reject) => {
      this.#done = download.lend((chunk, done) => {
        const part = chunk.subarray(0, missing)
        if (missing > 0) {
          parts.push(Buffer.from(part))
          missing -= part.length
          if (missing === 0) resolve(Buffer.concat(parts))
        }
        if (part.length === chunk.length) done()
        else if (this.#sink) this.#sink(chunk.subarray(part.length), done)
        else this.#waiting.push([chunk.subarray(part.length), done])
      })
      // It may be shorter than it said.
      this.#done.then(() => reject(new S3Error('InternalError', { message: CUT })), reject)
    })
    // Where the key of the object is known, only the rest is awaited.
    this.head.catch(() => {})
  }

  /** Lends what follows the head. */
  rest(sink: LentSink): Promise<void> {
    this.#sink = sink
    for (const [chunk, done] of this.#waiting.splice(0)) sink(chunk, done)
    return this.#done
  }
}

/**
 * Reads a part that `sealedPart` has sealed.
 * @param length of the sealed part
 * @param read passes on its bytes
 */
export async function openPart(
  key: Buffer,
  length: number,
  read: (sink: ByteSink) => Promise<void>,
  sink: ByteSink,
): Promise<void> {
  const nonce = Buffer.alloc(NONCE_BYTES)
  let known = 0
  let decrypter: PayloadDecrypter | undefined
  await read((chunk) => {
    const part = chunk.subarray(0, NONCE_BYTES - known)
    known += part.copy(nonce, known)
    if (known < NONCE_BYTES) return
    decrypter ??= new PayloadDecrypter(payloadKey(key, nonce), length)
    return passAll(decrypter.take(chunk.subarray(part.length)), sink)
  })
  if (!decrypter) throw new S3Error('InternalError', { message: CUT })
  decrypter.end()
}

/** The sealed bytes of whole chunks. */
export interface SealedBytes {
  lend(sink: LentSink): Promise<void>
  discard(): void
}

/** Chunks from which on their buffers are used again. */
const MIN_REUSED = 4

/** Chunks that are lent together at most: a write of them costs little more than one of a single chunk. */
const MAX_LENT = 4

const NOTHING: Buffer = Buffer.alloc(0)

/** Both as one if the second follows the first in memory. */
function joined(first: Buffer, second: Buffer): Buffer | undefined {
  if (first.buffer !== second.buffer || first.byteOffset + first.length !== second.byteOffset) return undefined
  return Buffer.from(first.buffer, first.byteOffset, first.length + second.length)
}

/** A range of the content of an encrypted object. Passes on no byte of a chunk that it has not verified. */
export class OpenedDownload implements Download {
  readonly object: GatewayObject
  readonly first: number
  readonly last: number
  readonly #span: SealedSpan
  readonly #key: Buffer
  readonly #sealed: SealedBytes

  constructor(object: GatewayObject, span: SealedSpan, key: Buffer, sealed: SealedBytes) {
    this.object = object
    this.first = span.first
    this.last = span.last
    this.#span = span
    this.#key = key
    this.#sealed = sealed
  }

  consume(sink: ByteSink): Promise<void> {
    // Several chunks may be lent at a time: the sink gets one after the other.
    let before = Promise.resolve()
    // The sink may keep the chunks.
    return this.#pass((content, done) => {
      before = before.then(() => sink(content))
      before.then(() => done(), done)
    })
  }

  lend(sink: LentSink): Promise<void> {
    const { firstChunk, lastChunk } = this.#span
    return this.#pass(sink, lastChunk - firstChunk < MIN_REUSED ? undefined : new BufferPool(CHUNK_BYTES, MAX_LENT))
  }

  /** @param pool for the content of chunks, which is valid until it is returned; by default it stays valid */
  async #pass(sink: LentSink, pool?: BufferPool): Promise<void> {
    const { size, encrypted } = this.object
    const { first, last, firstChunk, lastChunk } = this.#span
    const decrypter = new PayloadDecrypter(this.#key, size - (encrypted?.header ?? 0), firstChunk)
    let at = firstChunk * CHUNK_BYTES
    const passOn: LentSink = (chunk, done) => {
      let waiting = 1
      let failed: unknown
      const returned = (error?: unknown) => {
        failed ??= error
        if (--waiting === 0) done(failed)
      }
      let verified = NOTHING
      const lendVerified = () => {
        const chunks = verified
        verified = NOTHING
        if (chunks.length === 0) return
        waiting++
        try {
          sink(chunks, pool ? pool.lending(chunks, returned) : returned)
        } catch (error) {
          waiting--
          throw error
        }
      }
      try {
        for (const content of decrypter.take(chunk, pool?.take)) {
          const wanted = content.subarray(Math.max(0, first - at), Math.max(0, last + 1 - at))
          at += content.length
          const more = joined(verified, wanted)
          if (!more) lendVerified()
          verified = more ?? wanted
        }
      } catch (error) {
        failed = error
      }
      try {
        lendVerified()
        returned(failed)
      } catch (error) {
        returned(error)
      }
    }
    try {
      await this.#sealed.lend(passOn)
      decrypter.end(lastChunk)
    } catch (error) {
      this.#sealed.discard()
      throw error
    }
  }

  discard(): void {
    this.#sealed.discard()
  }
}

import type { ByteRange, Download, GatewayObject } from '../../api/gateway.js'
import type { ByteSink, LentSink } from '../../api/request.js'
import { S3Error } from '../../common/errors/s3-error.js'
import { resolveRange } from '../../gateway/objects/download-body.js'
import { CHUNK_BYTES, NONCE_BYTES, PayloadDecrypter, payloadKey, SEALED_CHUNK_BYTES, sizeInPayload } from './payload.js'
import { passAll } from './sealed-source.js'

/** The part of a stored object that holds a range of its content. */
export interface SealedSpan {
  /** Of the content; `last` is `first - 1` for an empty one. */
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
  #begin!: (sink: ByteSink) => void

  /** @param length of the head, which is shorter than the download */
  constructor(download: Pick<Download, 'consume'>, length: number) {
    const begun = new Promise<ByteSink>((resolve) => {
      this.#begin = resolve
    })
    let missing = length
    const parts: Buffer[] = []
    let known!: (head: Buffer) => void
    this.head = new Promise((resolve, reject) => {
      known = resolve
      this.#done = download.consume(async (chunk) => {
        const part = chunk.subarray(0, missing)
        if (missing > 0) {
          parts.push(part)
          missing -= part.length
          if (missing === 0) known(Buffer.concat(parts))
        }
        if (part.length < chunk.length) await (await begun)(chunk.subarray(part.length))
      })
      this.#done.catch(reject)
    })
  }

  /** Passes on what follows the head. */
  rest(sink: ByteSink): Promise<void> {
    this.#begin(sink)
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
  const split = new SplitDownload({ consume: read }, NONCE_BYTES)
  const decrypter = new PayloadDecrypter(payloadKey(key, await split.head), length)
  await split.rest((chunk) => passAll(decrypter.take(chunk), sink))
  decrypter.end()
}

/** The sealed bytes of whole chunks. */
export interface SealedBytes {
  consume(sink: ByteSink): Promise<void>
  discard(): void
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

  async consume(sink: ByteSink): Promise<void> {
    const { size, encrypted } = this.object
    const { first, last, firstChunk, lastChunk } = this.#span
    const decrypter = new PayloadDecrypter(this.#key, size - (encrypted?.header ?? 0), firstChunk)
    let at = firstChunk * CHUNK_BYTES
    const passOn: ByteSink = (content) => {
      const wanted = content.subarray(Math.max(0, first - at), Math.max(0, last + 1 - at))
      at += content.length
      return wanted.length > 0 ? sink(wanted) : undefined
    }
    try {
      await this.#sealed.consume((chunk) => passAll(decrypter.take(chunk), passOn))
      decrypter.end(lastChunk)
    } catch (error) {
      this.#sealed.discard()
      throw error
    }
  }

  lend(sink: LentSink): Promise<void> {
    return this.consume(
      (chunk) =>
        new Promise((resolve, reject) => {
          sink(chunk, (error) => (error === undefined ? resolve() : reject(error)))
        }),
    )
  }

  discard(): void {
    this.#sealed.discard()
  }
}

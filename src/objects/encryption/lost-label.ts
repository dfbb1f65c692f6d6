import type { EncryptionAlgorithm } from '../../api/encryption.js'
import type { Download, Gateway, GatewayObject } from '../../api/gateway.js'
import type { ByteSink, LentSink } from '../../api/request.js'
import { AGE_MAGIC, MAX_HEADER_BYTES, placedHeader } from './age-header.js'

// An encrypted object says so itself. Its label at the gateway may be lost, by a restore or by a program that copies
// bytes without metadata, and its record as well: its ciphertext is no content then, either.

/** Bytes of the shortest header with a stanza for a place. */
const MIN_BYTES = 200

/** A download, and its object as its first bytes show it. */
export interface SeenDownload {
  readonly object: GatewayObject
  /** Has all bytes still. */
  readonly download: Download
}

/**
 * Looks at the first bytes of an object that neither its label nor its record calls encrypted. Takes over the download:
 * it is discarded if this rejects.
 * @param gateway for bytes that the download does not have
 * @param algorithm of an object that is found to be encrypted
 */
export async function withLostLabel(
  gateway: Pick<Gateway, 'download'>,
  bucket: string,
  download: Download,
  algorithm: EncryptionAlgorithm,
): Promise<SeenDownload> {
  const { object, first, last } = download
  // A write of this server has its label, or none because it stored the bytes as they are.
  if (object.encrypted || object.writeId !== undefined || object.size < MIN_BYTES) return { object, download }
  const peeked =
    first === 0 && last >= AGE_MAGIC.length - 1 ? new PeekedDownload(download, AGE_MAGIC.length) : undefined
  const seen = peeked ?? download
  try {
    const head = (await peeked?.head) ?? (await beginning(gateway, bucket, object, AGE_MAGIC.length))
    if (head.toString('latin1', 0, AGE_MAGIC.length) !== AGE_MAGIC) return { object, download: seen }
    const header = placedHeader(await beginning(gateway, bucket, object, MAX_HEADER_BYTES))
    if (header === undefined) return { object, download: seen }
    // The gateway has computed its ETag from the encrypted bytes.
    const { etag: _, ...others } = object
    return { object: { ...others, encrypted: { algorithm, header, unlabelled: true } }, download: seen }
  } catch (error) {
    seen.discard()
    throw error
  }
}

async function beginning(
  gateway: Pick<Gateway, 'download'>,
  bucket: string,
  { key, size }: GatewayObject,
  length: number,
): Promise<Buffer> {
  const download = await gateway.download(bucket, key, { first: 0, last: Math.min(size, length) - 1 })
  const parts: Buffer[] = []
  await download.consume((chunk) => void parts.push(Buffer.from(chunk)))
  return Buffer.concat(parts)
}

/** A download of which the first bytes are known before the others are asked for. */
class PeekedDownload implements Download {
  readonly object: GatewayObject
  readonly first: number
  readonly last: number
  /** At least so many bytes as were asked for, of which the download must have as many. */
  readonly head: Promise<Buffer>
  readonly #download: Download
  readonly #done: Promise<void>
  #sink: LentSink | undefined
  /** With which the sink has returned a chunk that was copied. */
  #failure: { readonly error: unknown } | undefined
  #waiting: Parameters<LentSink>[] = []

  constructor(download: Download, length: number) {
    this.object = download.object
    this.first = download.first
    this.last = download.last
    this.#download = download
    let known = 0
    const parts: Buffer[] = []
    let done: Promise<void> = Promise.resolve()
    this.head = new Promise((resolve, reject) => {
      done = download.lend((chunk, returned) => {
        if (this.#sink) return this.#sink(chunk, returned)
        if (known >= length) return void this.#waiting.push([chunk, returned])
        // Returned at once: a gateway may lend its next bytes only then.
        const copy = Buffer.from(chunk)
        this.#waiting.push([copy, (error) => this.#fail(error)])
        returned()
        parts.push(copy)
        known += copy.length
        if (known >= length) resolve(Buffer.concat(parts))
      })
      done.then(() => reject(new Error('the download ended within its first bytes')), reject)
    })
    this.#done = done
    this.head.catch(() => {})
  }

  #fail(error: unknown): void {
    if (error === undefined) return
    this.#failure ??= { error }
    this.#download.discard()
  }

  async lend(sink: LentSink): Promise<void> {
    this.#sink = sink
    for (const [chunk, returned] of this.#waiting.splice(0)) sink(chunk, returned)
    try {
      await this.#done
    } catch (error) {
      throw this.#failure ? this.#failure.error : error
    }
    if (this.#failure) throw this.#failure.error
  }

  consume(sink: ByteSink): Promise<void> {
    let before = Promise.resolve()
    // The sink may keep the chunks.
    return this.lend((chunk, returned) => {
      const kept = Buffer.from(chunk)
      before = before.then(() => sink(kept))
      before.then(() => returned(), returned)
    })
  }

  discard(): void {
    this.#download.discard()
  }
}

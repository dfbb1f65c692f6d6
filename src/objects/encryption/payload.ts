import {
  type CipherChaCha20Poly1305,
  createCipheriv,
  createDecipheriv,
  type DecipherChaCha20Poly1305,
  hkdfSync,
} from 'node:crypto'
import { S3Error } from '../../../common/errors/s3-error.js'
import { freeBuffer } from '../../../common/free-buffer.js'

// The payload of an age file: a nonce, then chunks, each with its tag. https://c2sp.org/age, "Payload"

/** Bytes of a chunk before it is encrypted; the last one is shorter, or as long. */
export const CHUNK_BYTES = 64 * 1024

const TAG_BYTES = 16

/** Bytes of a chunk as it is stored. */
export const SEALED_CHUNK_BYTES = CHUNK_BYTES + TAG_BYTES

/** Bytes before the first chunk. */
export const NONCE_BYTES = 16

const CIPHER = 'chacha20-poly1305'

export function payloadLength(size: number): number {
  return NONCE_BYTES + size + TAG_BYTES * Math.max(1, Math.ceil(size / CHUNK_BYTES))
}

/** The number of bytes in a payload of this length; undefined where no bytes become such a payload. */
export function sizeInPayload(length: number): number | undefined {
  const chunks = chunksIn(length)
  const size = length - NONCE_BYTES - TAG_BYTES * chunks
  return chunks > 0 && size >= 0 && payloadLength(size) === length ? size : undefined
}

function chunksIn(length: number): number {
  return Math.ceil((length - NONCE_BYTES) / SEALED_CHUNK_BYTES)
}

/** The key of the chunks. */
export function payloadKey(fileKey: Uint8Array, nonce: Uint8Array): Buffer {
  return Buffer.from(hkdfSync('sha256', fileKey, nonce, 'payload', 32))
}

/** 11 bytes that count the chunks, and one that is 1 for the last chunk. */
function nonceOf(chunk: number, last: boolean): Buffer {
  const nonce = Buffer.alloc(12)
  nonce.writeUIntBE(chunk, 5, 6)
  nonce[11] = last ? 1 : 0
  return nonce
}

const TAGGED = { authTagLength: TAG_BYTES }

/** Encrypts bytes as they come. */
export class PayloadEncrypter {
  readonly #key: Buffer
  /** Bytes that may be the last. */
  readonly #held = Buffer.allocUnsafe(CHUNK_BYTES)
  #length = 0
  #chunk = 0

  constructor(key: Buffer) {
    this.#key = key
  }

  /**
   * Yields the chunks that are certainly not the last one. Reads `bytes` until it is done, and keeps none of them.
   * @param room gives a buffer of `SEALED_CHUNK_BYTES` for a chunk; by default each has a new one
   */
  *take(bytes: Buffer, room = newRoom): Generator<Buffer, void> {
    let at = 0
    while (bytes.length - at > CHUNK_BYTES - this.#length) {
      const end = at + CHUNK_BYTES - this.#length
      if (this.#length > 0) bytes.copy(this.#held, this.#length, at, end)
      const chunk = this.#length > 0 ? this.#held : bytes.subarray(at, end)
      yield this.#seal(chunk, false, room())
      this.#length = 0
      at = end
    }
    this.#length += bytes.copy(this.#held, this.#length, at)
  }

  /** The last chunk. */
  end(): Buffer {
    const sealed = this.#seal(this.#held.subarray(0, this.#length), true, newRoom())
    this.#held.fill(0)
    return sealed
  }

  #seal(content: Buffer, last: boolean, room: Buffer): Buffer {
    const cipher = createCipheriv(CIPHER, this.#key, nonceOf(this.#chunk++, last), TAGGED)
    updateInto(room, cipher, content)
    cipher.final()
    room.set(cipher.getAuthTag(), content.length)
    return room.subarray(0, content.length + TAG_BYTES)
  }
}

function newRoom(): Buffer {
  return Buffer.allocUnsafeSlow(SEALED_CHUNK_BYTES)
}

/** Decrypts whole chunks of a payload as they come, and passes on none that it has not verified. */
export class PayloadDecrypter {
  readonly #key: Buffer
  readonly #chunks: number
  readonly #lastLength: number
  #chunk: number
  /** The beginning of a chunk that is not complete. */
  #held: Buffer | undefined
  #length = 0

  /**
   * Throws S3Error for a payload that cannot have a chunk.
   * @param length of the whole payload, with its nonce
   * @param first the first chunk that comes
   */
  constructor(key: Buffer, length: number, first = 0) {
    if (length < NONCE_BYTES + TAG_BYTES) throw damaged(0, new Error('the payload is too short'))
    this.#key = key
    this.#chunks = chunksIn(length)
    this.#lastLength = length - NONCE_BYTES - (this.#chunks - 1) * SEALED_CHUNK_BYTES
    this.#chunk = first
  }

  /**
   * Yields the content of the chunks that are complete. Keeps none of `bytes`. Throws S3Error for one that is not as it
   * was written.
   * @param room gives a buffer of `CHUNK_BYTES` for the content of a chunk; by default each has a new one
   */
  *take(bytes: Buffer, room?: () => Buffer): Generator<Buffer, void> {
    let at = 0
    while (at < bytes.length) {
      if (this.#chunk >= this.#chunks) throw damaged(this.#chunk, new Error('bytes follow the last chunk'))
      const last = this.#chunk === this.#chunks - 1
      const wanted = (last ? this.#lastLength : SEALED_CHUNK_BYTES) - this.#length
      const part = bytes.subarray(at, at + wanted)
      at += part.length
      const isWhole = part.length === wanted
      if (!isWhole || this.#length > 0) {
        this.#held ??= Buffer.allocUnsafe(SEALED_CHUNK_BYTES)
        this.#length += part.copy(this.#held, this.#length)
      }
      if (!isWhole) return
      const sealed = this.#length > 0 && this.#held ? this.#held.subarray(0, this.#length) : part
      this.#length = 0
      const content = this.#open(sealed, last, room?.())
      this.#chunk++
      if (content.length > 0) yield content
    }
  }

  /**
   * Throws S3Error if a chunk is missing or incomplete.
   * @param last the last chunk that was to come; default that of the payload
   */
  end(last = this.#chunks - 1): void {
    if (this.#chunk <= last) throw damaged(this.#chunk, new Error('the chunk is missing or incomplete'))
  }

  #open(sealed: Buffer, last: boolean, room: Buffer | undefined): Buffer {
    const end = sealed.length - TAG_BYTES
    try {
      const decipher = createDecipheriv(CIPHER, this.#key, nonceOf(this.#chunk, last), TAGGED)
      decipher.setAuthTag(sealed.subarray(end))
      const content = room
        ? updateInto(room, decipher, sealed.subarray(0, end))
        : decipher.update(sealed.subarray(0, end))
      decipher.final()
      if (content.length === 0 && this.#chunk > 0) throw new Error('an empty chunk follows a full one')
      return content
    } catch (cause) {
      throw damaged(this.#chunk, cause)
    }
  }
}

/** Its output has memory of its own for each call. */
function updateInto(room: Buffer, cipher: CipherChaCha20Poly1305 | DecipherChaCha20Poly1305, bytes: Buffer): Buffer {
  const output = cipher.update(bytes)
  room.set(output)
  freeBuffer(output)
  return room.subarray(0, bytes.length)
}

function damaged(chunk: number, cause: unknown): S3Error {
  return new S3Error('InternalError', {
    message: `Chunk ${chunk} of the encrypted object is not as it was written: it was altered, exchanged or cut.`,
    cause,
  })
}

import type { ChunkSigning } from '../auth/caller.js'
import { S3Error } from '../errors/s3-error.js'
import { ChunkSignatures } from './chunk-signatures.js'
import { parseTrailer, type Trailer } from './trailer.js'

/** `<hex size>;chunk-signature=<64 hex>` is 97 bytes at most; the rest is room for extensions that other clients may add. */
const MAX_HEADER_BYTES = 512
const MAX_TRAILER_BYTES = 4096
const CR = 0x0d
const LF = 0x0a
const CHUNK_HEADER = /^([0-9a-f]{1,14})(?:;([^\r\n]*))?\r\n$/i
const CHUNK_SIGNATURE = /^chunk-signature=([0-9a-f]{64})$/

type State =
  /** In the line with the size of the next chunk. */
  | 'header'
  /** In the bytes of a chunk. */
  | 'data'
  /** In the CR LF that ends a chunk. */
  | 'data-end'
  /** Behind the chunk of size zero. */
  | 'trailer'

/**
 * Takes the framing off an aws-chunked body, however the network has cut it. Its memory is one line: data comes out as views of what went in.
 *
 * Data comes out before the signature of its chunk is known, but no later than that: `end` is reached only if every signature was right.
 */
export class AwsChunkedDecoder {
  readonly #signatures: ChunkSignatures | undefined
  readonly #allowTrailer: boolean
  #state: State = 'header'
  /** The part of a header line, or of the trailer, that has arrived. */
  #text = ''
  /** Bytes of the present chunk still to come. */
  #left = 0
  #claimed = ''
  #sawCr = false

  constructor(signing: ChunkSigning | undefined, allowTrailer: boolean) {
    this.#signatures = signing && new ChunkSignatures(signing)
    this.#allowTrailer = allowTrailer
  }

  /**
   * The data among the next bytes of the body.
   * @throws S3Error InvalidRequest, SignatureDoesNotMatch, MalformedTrailerError
   */
  decode(bytes: Buffer): Buffer[] {
    const data: Buffer[] = []
    let at = 0
    while (at < bytes.length) {
      switch (this.#state) {
        case 'header':
          at = this.#header(bytes, at)
          break
        case 'data': {
          const piece = bytes.subarray(at, at + this.#left)
          data.push(piece)
          at += piece.length
          this.#data(piece)
          break
        }
        case 'data-end':
          this.#dataEnd(bytes[at++] as number)
          break
        case 'trailer':
          this.#take(bytes, at, bytes.length, MAX_TRAILER_BYTES)
          at = bytes.length
          break
      }
    }
    return data
  }

  /**
   * To be called when the body has ended.
   * @throws S3Error IncompleteBody, MalformedTrailerError, SignatureDoesNotMatch
   */
  end(): Trailer {
    if (this.#state !== 'trailer') {
      throw new S3Error('IncompleteBody', { message: 'The body ended before its last chunk, the one of size zero.' })
    }
    const { entries, signature } = parseTrailer(this.#text)
    if (!this.#allowTrailer && entries.length > 0) {
      throw new S3Error('MalformedTrailerError', { message: 'The body has a trailer, which its form does not allow.' })
    }
    if (this.#signatures !== undefined && entries.length > 0) {
      const canonical = entries.map(([name, value]) => `${name}:${value}\n`).join('')
      this.#signatures.endTrailer(canonical, signature ?? '')
    }
    return entries
  }

  #header(bytes: Buffer, at: number): number {
    const newline = bytes.indexOf(LF, at)
    const end = newline < 0 ? bytes.length : newline + 1
    this.#take(bytes, at, end, MAX_HEADER_BYTES)
    if (newline >= 0) {
      const line = this.#text
      this.#text = ''
      this.#beginChunk(line)
    }
    return end
  }

  #take(bytes: Buffer, from: number, to: number, limit: number): void {
    if (this.#text.length + to - from > limit) {
      throw malformed(`a ${this.#state === 'trailer' ? 'trailer' : 'chunk header'} is longer than ${limit} bytes`)
    }
    this.#text += bytes.toString('latin1', from, to)
  }

  #beginChunk(line: string): void {
    const match = CHUNK_HEADER.exec(line)
    if (match === null) throw malformed('a chunk must start with its size in hex and CR LF')
    this.#left = Number.parseInt(match[1] as string, 16)
    if (!Number.isSafeInteger(this.#left)) throw malformed('a chunk is too large')
    if (this.#signatures !== undefined) {
      const claimed = CHUNK_SIGNATURE.exec(match[2] ?? '')?.[1]
      if (claimed === undefined)
        throw malformed('a signed chunk must start with its size and ;chunk-signature=<64 hex>')
      this.#claimed = claimed
    }
    if (this.#left > 0) {
      this.#state = 'data'
    } else {
      this.#signatures?.endChunk(this.#claimed)
      this.#state = 'trailer'
    }
  }

  #data(piece: Buffer): void {
    this.#signatures?.update(piece)
    this.#left -= piece.length
    if (this.#left > 0) return
    this.#signatures?.endChunk(this.#claimed)
    this.#state = 'data-end'
    this.#sawCr = false
  }

  #dataEnd(byte: number): void {
    if (byte !== (this.#sawCr ? LF : CR)) throw malformed('a chunk is not followed by CR LF, or longer than its size')
    if (this.#sawCr) this.#state = 'header'
    this.#sawCr = true
  }
}

function malformed(what: string): S3Error {
  return new S3Error('InvalidRequest', { message: `The aws-chunked body is malformed: ${what}.` })
}

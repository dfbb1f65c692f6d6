import { createHash, type Hash, hash } from 'node:crypto'
import { S3Error } from '../../../common/errors/s3-error.js'
import { EMPTY_SHA256, signature, timingSafeEqualHex } from '../../../common/sigv4.js'
import type { ChunkSigning } from '../../api/identity.js'

/** `<hex size>;chunk-signature=<64 hex>` has at most 97 bytes; the rest is for extensions of other clients. */
const MAX_HEADER_BYTES = 512
const MAX_TRAILER_BYTES = 4096

/**
 * Minimum size of every signed chunk except the last one with data.
 * https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-streaming.html
 */
const MIN_CHUNK_BYTES = 8192
const CR = 0x0d
const LF = 0x0a

/** S3 allows spaces around the size, the semicolon and the equals sign. */
const CHUNK_HEADER = /^[ \t]*([0-9a-f]{1,14})[ \t]*(?:;([^\r\n]*))?\r\n$/i
const CHUNK_SIGNATURE = /^[ \t]*chunk-signature[ \t]*=[ \t]*([^ \t;]*)[ \t]*(;.*)?$/

export interface Framing {
  /** Undefined for chunks without signatures. */
  readonly signing: ChunkSigning | undefined
  /** True if the body may have a trailer. */
  readonly trailer: boolean
}

type State =
  /** In the line with the size of the next chunk. */
  | 'header'
  /** In the bytes of a chunk. */
  | 'data'
  /** In the CR LF after a chunk. */
  | 'data-end'
  /** After the chunk of size zero. */
  | 'trailer'

/**
 * Removes the framing of an aws-chunked body, independent of packet boundaries. Buffers at most one line: the data are
 * views of the input.
 *
 * Data are returned before the signature of their chunk is verified; `end` returns only if every signature matches.
 */
export class AwsChunkedDecoder {
  readonly #signatures: ChunkSignatures | undefined
  readonly #allowTrailer: boolean
  #state: State = 'header'
  /** The received part of a header line or of the trailer. */
  #text = ''
  /** Remaining bytes of the current chunk. */
  #left = 0
  /** Number of started chunks. */
  #chunks = 0
  /** Size of the current chunk, or between chunks of the last one, bytes. */
  #size = MIN_CHUNK_BYTES
  #claimed = ''
  #sawCr = false

  constructor({ signing, trailer }: Framing) {
    this.#signatures = signing && new ChunkSignatures(signing)
    this.#allowTrailer = trailer
  }

  /**
   * Returns the data in the next bytes of the body.
   * @throws S3Error IncompleteBody, InvalidChunkSizeError, SignatureDoesNotMatch
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
   * Must be called at the end of the body. Returns its trailer.
   * @throws S3Error IncompleteBody, MalformedTrailerError, SignatureDoesNotMatch
   */
  end(): Trailer {
    if (this.#state !== 'trailer') {
      throw terminated('The body ended before its last chunk, which has size zero.')
    }
    const { entries, signature } = parseTrailer(this.#text)
    if (!this.#allowTrailer && entries.length > 0) {
      throw new S3Error('MalformedTrailerError', {
        fields: { Reason: 'The body has a trailer, which its x-amz-content-sha256 does not allow.' },
      })
    }
    if (this.#signatures !== undefined && entries.length > 0) {
      if (signature === undefined) {
        throw incomplete('it has no signature')
      }
      const canonical = entries.map(([name, value]) => `${name}:${value}\n`).join('')
      this.#signatures.endTrailer(canonical, signature)
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
      this.#requireSize()
      const [, claimed, others] = CHUNK_SIGNATURE.exec(match[2] ?? '') ?? []
      if (others !== undefined) throw malformed('something follows the signature of a chunk')
      // A missing signature counts as one that does not match.
      this.#claimed = claimed ?? ''
    }
    if (this.#left > 0) {
      this.#state = 'data'
    } else {
      this.#signatures?.endChunk(this.#claimed)
      this.#state = 'trailer'
    }
  }

  /**
   * Refuses small signed chunks: a signature for every few bytes is expensive to verify, and no client sends them. S3
   * refuses small unsigned chunks too. This server accepts those, because aws-sdk-js-v3 sends each piece of a stream as
   * a chunk unless its user configures a buffer: https://github.com/aws/aws-sdk-js-v3/issues/7509
   */
  #requireSize(): void {
    this.#chunks++
    if (this.#left > 0 && this.#size < MIN_CHUNK_BYTES) {
      throw new S3Error('InvalidChunkSizeError', { fields: { Chunk: this.#chunks, BadChunkSize: this.#size } })
    }
    this.#size = this.#left
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
  return terminated(`The aws-chunked body is malformed: ${what}.`)
}

/** The message is that of S3. */
function terminated(reason: string): S3Error {
  return new S3Error('IncompleteBody', {
    message: 'The request body terminated unexpectedly',
    fields: { Reason: reason },
  })
}

const NO_MATCH =
  'The request signature we calculated does not match the signature you provided. Check your key and signing method.'

/**
 * Verifies the signatures of an aws-chunked body. Each signature covers the previous one.
 * https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-streaming.html
 * https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-streaming-trailers.html
 */
class ChunkSignatures {
  readonly #signing: ChunkSigning
  #previous: string
  #hash: Hash | undefined
  #chunk = 1

  constructor(signing: ChunkSigning) {
    this.#signing = signing
    this.#previous = signing.seedSignature
  }

  /** Adds the next bytes of the current chunk. */
  update(bytes: Uint8Array): void {
    this.#hash ??= createHash('sha256')
    this.#hash.update(bytes)
  }

  /** @throws S3Error SignatureDoesNotMatch unless `claimed` is the signature of the chunk that ends here */
  endChunk(claimed: string): void {
    const digest = this.#hash?.digest('hex') ?? EMPTY_SHA256
    this.#hash = undefined
    this.#verify(`${this.#preamble('PAYLOAD')}\n${EMPTY_SHA256}\n${digest}`, claimed, `chunk ${this.#chunk++}`)
  }

  /** @param canonical the trailer as `name:value` lines, each ended by a line feed */
  endTrailer(canonical: string, claimed: string): void {
    const digest = hash('sha256', Buffer.from(canonical, 'latin1'), 'hex')
    this.#verify(`${this.#preamble('TRAILER')}\n${digest}`, claimed, 'the trailer')
  }

  #preamble(kind: 'PAYLOAD' | 'TRAILER'): string {
    const { date, scope } = this.#signing
    return `AWS4-HMAC-SHA256-${kind}\n${date}\n${scope}\n${this.#previous}`
  }

  #verify(toSign: string, claimed: string, what: string): void {
    if (claimed === '') throw malformed(`${what} has no signature`)
    if (!timingSafeEqualHex(signature(this.#signing.key, toSign), claimed)) {
      const Reason = `The signature of ${what} does not match its bytes.`
      throw new S3Error('SignatureDoesNotMatch', {
        message: NO_MATCH,
        fields: { Reason, StringToSign: toSign, SignatureProvided: claimed },
      })
    }
    this.#previous = claimed
  }
}

/** Lower-case names and values, in order of arrival. */
export type Trailer = readonly (readonly [name: string, value: string])[]

/** S3 allows white space on both sides of the colon; HTTP allows it only after the colon. */
const LINE = /^([!#$%&'*+\-.^_`|~0-9a-z]+)[ \t]*:(.*)$/i
const TRAILER_SIGNATURE = /^x-(?:amz|cloud)-trailer-signature$/

/**
 * Parses the text after the chunk of size zero by the rules of S3: lines end with CR LF, an empty line ends the
 * trailer, and everything after it is ignored. The last value of a repeated name counts. minio-go and the examples in
 * Amazon's documentation end a line with LF followed by CR LF; together they count as one end of line.
 * https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-streaming-trailers.html
 * @throws S3Error IncompleteBody for a line that is truncated or ends with LF only, MalformedTrailerError
 */
function parseTrailer(text: string): { entries: Trailer; signature: string | undefined } {
  const entries = new Map<string, string>()
  let signature: string | undefined
  for (const line of linesOf(text)) {
    const match = LINE.exec(line)
    if (match === null) throw badTrailer('a line is not of the form name:value')
    const name = (match[1] as string).toLowerCase()
    const value = (match[2] as string).trim()
    if (signature !== undefined) throw badTrailer('something follows its signature')
    if (TRAILER_SIGNATURE.test(name)) signature = value
    else entries.set(name, value)
  }
  if (signature !== undefined && entries.size === 0) throw incomplete('it has a signature and nothing else')
  return { entries: [...entries], signature }
}

/** Yields the lines before the empty line or the end of the text, without their line ends. */
function* linesOf(text: string): Generator<string> {
  for (let at = 0; at < text.length; ) {
    const end = text.indexOf('\n', at)
    if (end < 0) throw incomplete('its last line is cut off')
    const strict = end > at && text[end - 1] === '\r'
    if (!strict && !text.startsWith('\r\n', end + 1)) throw incomplete('a line ends with LF alone')
    const line = text.slice(at, strict ? end - 1 : end)
    if (line === '') return
    yield line
    at = strict ? end + 1 : end + 3
  }
}

function badTrailer(what: string): S3Error {
  return new S3Error('MalformedTrailerError', { fields: { Reason: `The trailer of the body is malformed: ${what}.` } })
}

function incomplete(what: string): S3Error {
  return terminated(`The trailer of the body is incomplete: ${what}.`)
}

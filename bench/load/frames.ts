import { createHash } from 'node:crypto'
import { ALGORITHM, EMPTY_SHA256, signature } from '../../common/sigv4.js'

/** What an aws-chunked body is framed with; passes over IPC. */
export interface Frames {
  /** Absent for unsigned chunks. */
  readonly signing?: {
    /** Base64. */
    readonly key: string
    readonly seed: string
    readonly timestamp: string
    readonly scope: string
  }
  /** The line of the trailer, such as `x-amz-checksum-crc32:AAAAAA==`; absent for none. */
  readonly trailer?: string
}

/** Bytes of a chunk, as the SDKs cut them. */
const CHUNK = 64 * 1024
const SIGNATURE = 64

/** Frames the chunks of a body: https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-streaming.html */
export class Framing {
  readonly #frames: Frames
  readonly #key: Buffer
  #previous: string

  constructor(frames: Frames) {
    this.#frames = frames
    this.#key = Buffer.from(frames.signing?.key ?? '', 'base64')
    this.#previous = frames.signing?.seed ?? ''
  }

  /** The line before a chunk. */
  header(chunk: Buffer): string {
    const size = chunk.length.toString(16)
    const { signing } = this.#frames
    if (!signing) return `${size}\r\n`
    const { timestamp, scope } = signing
    const hash = createHash('sha256').update(chunk).digest('hex')
    const lines = [`${ALGORITHM}-PAYLOAD`, timestamp, scope, this.#previous, EMPTY_SHA256, hash]
    this.#previous = signature(this.#key, lines.join('\n'))
    return `${size};chunk-signature=${this.#previous}\r\n`
  }

  /** What follows the last chunk. */
  end(): string {
    const { trailer } = this.#frames
    return `${this.header(Buffer.alloc(0))}${trailer === undefined ? '' : `${trailer}\r\n`}\r\n`
  }
}

/** Cuts the content of an object into chunks. */
export function* chunksOf(period: Buffer, size: number): Generator<Buffer> {
  const twice = Buffer.concat([period, period])
  for (let at = 0; at < size; at += CHUNK) {
    const from = at % period.length
    yield twice.subarray(from, from + Math.min(CHUNK, size - at))
  }
}

/** Bytes of a body of `size` bytes with its framing. */
export function framedLength(size: number, { signing, trailer }: Frames): number {
  const header = (bytes: number) =>
    bytes.toString(16).length + 2 + (signing ? ';chunk-signature='.length + SIGNATURE : 0)
  const whole = Math.floor(size / CHUNK)
  const rest = size % CHUNK
  const chunks = whole * (header(CHUNK) + CHUNK + 2) + (rest > 0 ? header(rest) + rest + 2 : 0)
  return chunks + header(0) + (trailer === undefined ? 0 : trailer.length + 2) + 2
}

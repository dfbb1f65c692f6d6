import { ALGORITHM, credentialScope, EMPTY_SHA256, signature, signingKey } from '../../../common/sigv4.js'
import type { ChunkSigning } from '../../../src/api/identity.js'
import type { Signed } from '../../suites/sign.js'
import { sha256 } from '../content/content.js'
import { example } from './sign-head.js'

/** The seed signature in Amazon's documentation of chunked uploads, and the signing that continues it. */
const seed = '4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9'

export const signing: ChunkSigning = {
  key: signingKey(example.secretAccessKey, '20130524', 'us-east-1', 's3'),
  seedSignature: seed,
  date: example.timestamp,
  scope: credentialScope('20130524', 'us-east-1', 's3'),
}

interface FrameOptions {
  /** Signs each chunk and the trailer. */
  signing?: ChunkSigning | undefined
  /** Trailer lines, without line ends: `x-amz-checksum-crc32:AAAAAA==`. */
  trailer?: string | readonly string[]
  /** minio-go ends the line of the trailer with LF and writes CR LF after it; other clients write CR LF. */
  style?: 'crlf' | 'minio'
}

/** An aws-chunked body: https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-streaming.html */
export function frame(chunks: readonly Buffer[], options: FrameOptions = {}): Buffer {
  const { signing, trailer, style = 'crlf' } = options
  let previous = signing?.seedSignature ?? ''
  const seal = ({ key, date, scope }: ChunkSigning, kind: string, ...lines: string[]) => {
    previous = signature(key, [`${ALGORITHM}-${kind}`, date, scope, previous, ...lines].join('\n'))
    return previous
  }
  const header = (chunk: Buffer) => {
    const size = chunk.length.toString(16)
    return signing === undefined
      ? `${size}\r\n`
      : `${size};chunk-signature=${seal(signing, 'PAYLOAD', EMPTY_SHA256, sha256(chunk))}\r\n`
  }
  const out: (Buffer | string)[] = []
  for (const chunk of chunks) out.push(header(chunk), chunk, '\r\n')
  out.push(header(Buffer.alloc(0)))
  if (trailer !== undefined) {
    const lines = [trailer].flat()
    for (const line of lines) out.push(line, style === 'minio' ? '\n\r\n' : '\r\n')
    if (signing !== undefined) {
      const value = seal(signing, 'TRAILER', sha256(lines.map((line) => `${line}\n`).join('')))
      out.push(`x-amz-trailer-signature:${value}\r\n`)
    }
  }
  out.push('\r\n')
  return Buffer.concat(out.map((part) => Buffer.from(part as string)))
}

interface Chunking {
  readonly chunkBytes?: number
  readonly trailer?: readonly string[]
}

/** `data` in signed chunks, for a request that `sign` has signed. */
export function signedChunks(signed: Signed, data: Buffer, { chunkBytes, trailer }: Chunking = {}): Buffer {
  const { key, seed: seedSignature, timestamp: date, scope } = signed
  return frame(pieces(data, chunkBytes), { signing: { key, seedSignature, date, scope }, trailer })
}

/** `data` in chunks without signatures, with a trailer. */
export function unsignedChunks(data: Buffer, { chunkBytes, trailer = [] }: Chunking = {}): Buffer {
  return frame(pieces(data, chunkBytes), { trailer })
}

function pieces(data: Buffer, bytes = 64 * 1024): Buffer[] {
  return Array.from({ length: Math.ceil(data.length / bytes) }, (_, i) => data.subarray(i * bytes, (i + 1) * bytes))
}

import { createHash } from 'node:crypto'
import type { ChunkSigning } from '../../src/auth/caller.js'
import { credentialScope, EMPTY_SHA256, signature, signingKey } from '../../src/common/sigv4.js'
import { example } from './signer.js'

/** Writes aws-chunked bodies as clients do. */

export const seed = '4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9'

export const signing: ChunkSigning = {
  key: signingKey(example.secretAccessKey, '20130524', 'us-east-1', 's3'),
  seedSignature: seed,
  date: example.timestamp,
  scope: credentialScope('20130524', 'us-east-1', 's3'),
}

const sha256 = (data: string | Buffer) => createHash('sha256').update(data).digest('hex')

export interface FrameOptions {
  signing?: ChunkSigning | undefined
  /** `name:value` */
  trailer?: string
  /** minio-go ends the line of the trailer with LF and puts CR LF behind it; everybody else writes CR LF. */
  style?: 'crlf' | 'minio'
}

export function frame(chunks: readonly Buffer[], options: FrameOptions = {}): Buffer {
  const { signing, trailer, style = 'crlf' } = options
  let previous = signing?.seedSignature ?? ''
  const header = (chunk: Buffer) => {
    const size = chunk.length.toString(16)
    if (signing === undefined) return `${size}\r\n`
    const toSign = `AWS4-HMAC-SHA256-PAYLOAD\n${signing.date}\n${signing.scope}\n${previous}\n${EMPTY_SHA256}\n${sha256(chunk)}`
    previous = signature(signing.key, toSign)
    return `${size};chunk-signature=${previous}\r\n`
  }
  const out: (Buffer | string)[] = []
  for (const chunk of chunks) out.push(header(chunk), chunk, '\r\n')
  out.push(header(Buffer.alloc(0)))
  if (trailer !== undefined) {
    out.push(trailer, style === 'minio' ? '\n\r\n' : '\r\n')
    if (signing !== undefined) {
      const toSign = `AWS4-HMAC-SHA256-TRAILER\n${signing.date}\n${signing.scope}\n${previous}\n${sha256(`${trailer}\n`)}`
      out.push(`x-amz-trailer-signature:${signature(signing.key, toSign)}\r\n`)
    }
  }
  out.push('\r\n')
  return Buffer.concat(out.map((part) => Buffer.from(part as string)))
}

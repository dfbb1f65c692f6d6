import { nonsense } from '../errors.js'
import type { Framing } from './framing.js'

const LF = 0x0a
/** Longest line with the size of a chunk, which may carry extensions, and longest line of the trailer, bytes. */
const MAX_LINE_BYTES = 4096
const MAX_TRAILER_LINES = 64
/** 13 hex digits stay below 2^53. */
const SIZE_LINE = /^([0-9a-f]{1,13})[ \t]*(?:;[^\r\n]*)?\r\n$/i

/** Decodes `Transfer-Encoding: chunked` (RFC 9112 section 7.1). Needs memory for one line; skips trailers. */
export class ChunkedFraming implements Framing {
  readonly endsWithConnection = false
  readonly left = undefined
  complete = false
  surplus = false
  #state: 'size' | 'data' | 'data-end' | 'trailer' = 'size'
  /** The part of a line that has arrived. */
  #line = ''
  /** Bytes missing from the present chunk. */
  #chunkLeft = 0
  #trailerLines = 0

  decode(bytes: Buffer): Buffer {
    const pieces: Buffer[] = []
    let at = 0
    while (at < bytes.length && !this.complete) {
      if (this.#state === 'data') {
        const piece = bytes.subarray(at, at + this.#chunkLeft)
        pieces.push(piece)
        at += piece.length
        this.#chunkLeft -= piece.length
        if (this.#chunkLeft === 0) this.#state = 'data-end'
      } else at = this.#takeLine(bytes, at)
    }
    this.surplus ||= at < bytes.length
    return pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces)
  }

  #takeLine(bytes: Buffer, at: number): number {
    const end = bytes.indexOf(LF, at)
    const stop = end < 0 ? bytes.length : end + 1
    if (this.#line.length + stop - at > MAX_LINE_BYTES) throw broken()
    this.#line += bytes.toString('latin1', at, stop)
    if (end >= 0) {
      const line = this.#line
      this.#line = ''
      this.#endLine(line)
    }
    return stop
  }

  #endLine(line: string): void {
    if (this.#state === 'size') {
      const size = SIZE_LINE.exec(line)?.[1]
      if (size === undefined) throw broken()
      this.#chunkLeft = Number.parseInt(size, 16)
      this.#state = this.#chunkLeft > 0 ? 'data' : 'trailer'
    } else if (this.#state === 'data-end') {
      if (line !== '\r\n') throw broken()
      this.#state = 'size'
    } else if (line === '\r\n') this.complete = true
    else if (++this.#trailerLines > MAX_TRAILER_LINES) throw broken()
  }
}

function broken(): Error {
  return nonsense('answered with broken chunks')
}

const HEAD_END = '\r\n\r\n'

export interface Answer {
  readonly status: number
  /** Content-Length as announced; undefined for a chunked body. */
  readonly length: number | undefined
  readonly body: Buffer
  /** The server closes the connection after it. */
  readonly closes: boolean
}

/** Reads the answers on one connection, with bodies that fit into memory. Does as little as possible. */
export class AnswerReader {
  #received: Buffer = Buffer.alloc(0)

  /**
   * @param bodiless true for the answer to HEAD. Returns undefined until the answer is complete. Throws on what is not
   * HTTP.
   */
  take(bytes: Buffer, bodiless: boolean): Answer | undefined {
    this.#received = this.#received.length === 0 ? bytes : Buffer.concat([this.#received, bytes])
    for (;;) {
      const end = this.#received.indexOf(HEAD_END, 0, 'latin1')
      if (end < 0) return undefined
      const head = this.#received.toString('latin1', 0, end)
      const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(head)?.[1] ?? Number.NaN)
      if (Number.isNaN(status)) throw new Error(`not HTTP/1.1: ${head.slice(0, 80)}`)
      if (status >= 200) return this.#complete(head, status, end + HEAD_END.length, bodiless)
      this.#received = this.#received.subarray(end + HEAD_END.length)
    }
  }

  #complete(head: string, status: number, start: number, bodiless: boolean): Answer | undefined {
    const announced = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1]
    const length = announced === undefined ? undefined : Number(announced)
    const chunked = /\r\ntransfer-encoding: *chunked/i.test(head)
    const closes = /\r\nconnection: *close/i.test(head)
    const done = (of: number | undefined, body: Buffer, end: number) =>
      this.#done({ status, length: of, body, closes }, end)
    if (bodiless || status === 204 || status === 304) return done(length, Buffer.alloc(0), start)
    if (chunked) {
      const found = dechunk(this.#received, start)
      return found && done(undefined, found.body, found.end)
    }
    if (length === undefined) throw new Error('an answer without a length')
    if (this.#received.length < start + length) return undefined
    return done(length, this.#received.subarray(start, start + length), start + length)
  }

  #done(answer: Answer, end: number): Answer {
    if (this.#received.length > end) throw new Error('more bytes than the answer announced')
    this.#received = Buffer.alloc(0)
    return answer
  }
}

/** Returns undefined until the last chunk is there. */
function dechunk(bytes: Buffer, start: number): { body: Buffer; end: number } | undefined {
  const parts: Buffer[] = []
  for (let at = start; ; ) {
    const line = bytes.indexOf('\r\n', at, 'latin1')
    if (line < 0) return undefined
    const size = Number.parseInt(bytes.toString('latin1', at, line), 16)
    const next = line + 2 + size + 2
    if (bytes.length < next) return undefined
    if (size === 0) return { body: Buffer.concat(parts), end: next }
    parts.push(bytes.subarray(line + 2, line + 2 + size))
    at = next
  }
}

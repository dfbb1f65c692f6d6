/** Buffers for chunks that are lent. As many are there as were lent at a time. */
export class BufferPool {
  readonly #chunkBytes: number
  readonly #together: number
  readonly #free: Buffer[] = []
  #rest = NOTHING

  /** @param together chunks that may be lent in one buffer */
  constructor(chunkBytes: number, together: number) {
    this.#chunkBytes = chunkBytes
    this.#together = together
  }

  /** A buffer for a chunk, right behind the one before if that has not been lent and there is room. */
  readonly take = (): Buffer => {
    const length = this.#chunkBytes
    if (this.#rest.length === 0) this.#rest = this.#free.pop() ?? Buffer.allocUnsafeSlow(length * this.#together)
    const room = this.#rest.subarray(0, length)
    this.#rest = this.#rest.subarray(length)
    return room
  }

  /** A function that gives back the buffer of chunks, which begin it, and calls `done`. */
  lending(chunks: Buffer, done: (error?: unknown) => void = () => {}): (error?: unknown) => void {
    if (this.#rest.buffer === chunks.buffer) this.#rest = NOTHING
    let lent = true
    return (error) => {
      if (lent) this.#free.push(Buffer.from(chunks.buffer))
      lent = false
      done(error)
    }
  }
}

const NOTHING: Buffer = Buffer.alloc(0)

/** Bytes of a block. */
const BLOCK = 64 * 1024

/**
 * Keeps bytes in blocks of 64 KiB, however small the chunks in which they arrive: each chunk by itself would cost some
 * 100 bytes more, and a client chooses their size.
 */
export class Blocks {
  readonly #full: Buffer[] = []
  #last = Buffer.alloc(0)
  #used = 0
  #size = 0

  /** Bytes in all. */
  get size(): number {
    return this.#size
  }

  add(chunk: Uint8Array): void {
    for (let at = 0; at < chunk.length; ) {
      if (this.#used === this.#last.length) this.#begin(chunk.length - at)
      const taken = Math.min(chunk.length - at, this.#last.length - this.#used)
      this.#last.set(chunk.subarray(at, at + taken), this.#used)
      this.#used += taken
      at += taken
    }
    this.#size += chunk.length
  }

  /** The bytes, in blocks of 64 KiB at most. */
  all(): Buffer[] {
    return this.#used === 0 ? [...this.#full] : [...this.#full, this.#last.subarray(0, this.#used)]
  }

  /** Begins a block: the first one is small, because most bodies are. */
  #begin(wanted: number): void {
    if (this.#used > 0 && this.#used < BLOCK) {
      const larger = Buffer.allocUnsafe(BLOCK)
      larger.set(this.#last)
      this.#last = larger
      return
    }
    if (this.#used > 0) this.#full.push(this.#last)
    this.#last = Buffer.allocUnsafe(this.#size === 0 ? Math.min(BLOCK, Math.max(1024, wanted)) : BLOCK)
    this.#used = 0
  }
}

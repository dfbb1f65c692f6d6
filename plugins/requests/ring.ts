/** Most requests that are kept, and most bytes of them. */
const MAX_REQUESTS = 5000
const MAX_BYTES = 2 * 1024 * 1024

/** The most bytes that a UTF-16 unit becomes. */
const UTF8_BYTES = 3

interface Bounds {
  readonly requests: number
  readonly bytes: number
}

/**
 * The last texts that were added, each with a number that grows. They are bytes in one buffer: a text that was cut out
 * of the head of a request would keep all of that head in memory, with its signature.
 */
export class Ring {
  readonly #bounds: Bounds
  readonly #bytes: Buffer
  readonly #numbers: Float64Array
  readonly #starts: Uint32Array
  readonly #ends: Uint32Array
  /** Counts of texts: those from `first` to before `next` are kept, each at its place modulo the bound. */
  #first = 0
  #next = 0
  /** Where the next one begins. */
  #at = 0
  #evicted = 0

  constructor(bounds: Bounds = { requests: MAX_REQUESTS, bytes: MAX_BYTES }) {
    this.#bounds = bounds
    this.#bytes = Buffer.alloc(bounds.bytes)
    this.#numbers = new Float64Array(bounds.requests)
    this.#starts = new Uint32Array(bounds.requests)
    this.#ends = new Uint32Array(bounds.requests)
  }

  /** Number of the newest text that made room for others; 0 for none. */
  get evicted(): number {
    return this.#evicted
  }

  /**
   * Evicts the oldest ones as far as needed. A text that could not be kept at all is left out.
   * @param number more than that of any before
   */
  add(number: number, text: string): void {
    const { requests, bytes } = this.#bounds
    const most = text.length * UTF8_BYTES
    if (most > bytes) return
    if (this.#at + most > bytes) {
      this.#evict((start) => start >= this.#at)
      this.#at = 0
    }
    const end = this.#at + most
    if (this.#next - this.#first === requests) this.#drop()
    this.#evict((start) => start >= this.#at && start < end)
    const place = this.#next++ % requests
    this.#numbers[place] = number
    this.#starts[place] = this.#at
    this.#at += this.#bytes.write(text, this.#at)
    this.#ends[place] = this.#at
  }

  /** The texts with higher numbers than `after`, the oldest first. Nothing may be added meanwhile. */
  *newerThan(after: number): Generator<readonly [number: number, text: string]> {
    for (let count = this.#firstAfter(after); count < this.#next; count++) yield this.#textAt(count)
  }

  /** All texts, the newest first. Nothing may be added meanwhile. */
  *newestFirst(): Generator<readonly [number: number, text: string]> {
    for (let count = this.#next - 1; count >= this.#first; count--) yield this.#textAt(count)
  }

  #textAt(count: number): readonly [number, string] {
    const place = count % this.#bounds.requests
    return [this.#numberAt(count), this.#bytes.toString('utf8', this.#starts[place], this.#ends[place])]
  }

  #numberAt(count: number): number {
    return this.#numbers[count % this.#bounds.requests] ?? 0
  }

  #firstAfter(after: number): number {
    let [low, high] = [this.#first, this.#next]
    while (low < high) {
      const middle = Math.floor((low + high) / 2)
      if (this.#numberAt(middle) > after) high = middle
      else low = middle + 1
    }
    return low
  }

  /** Evicts from the oldest on, while they are in the way. */
  #evict(isInTheWay: (start: number) => boolean): void {
    while (this.#first < this.#next && isInTheWay(this.#starts[this.#first % this.#bounds.requests] ?? 0)) this.#drop()
  }

  #drop(): void {
    this.#evicted = this.#numberAt(this.#first++)
  }
}

/** Initial number of slots; always a power of two. */
const FIRST_SLOTS = 1024

/**
 * Locates the blocks of a CAR: a hash table from the first 8 bytes of a digest to the offset of the first section with
 * such a digest. It takes 16 bytes per slot and has 1.5 to 3 slots per block, so at most 48 bytes per block, and half
 * as much again while it grows.
 */
export class CarIndex {
  #keys = new Uint32Array(2 * FIRST_SLOTS)
  /** Offset of the section plus one; 0 marks an empty slot. */
  #offsets = new Float64Array(FIRST_SLOTS)
  #marks: Uint8Array | undefined
  #count = 0

  get bytes(): number {
    return this.#keys.byteLength + this.#offsets.byteLength
  }

  add(digest: Uint8Array, offset: number): void {
    const [a, b] = keyOf(digest)
    const slot = this.#find(a, b)
    if (this.#offsets[slot] !== 0) return
    this.#set(slot, a, b, offset + 1)
    if (++this.#count * 1.5 > this.#offsets.length) this.#grow()
  }

  /** The caller must still compare the whole digest. */
  offsetOf(digest: Uint8Array): number | undefined {
    const [a, b] = keyOf(digest)
    const offset = this.#offsets[this.#find(a, b)] ?? 0
    return offset === 0 ? undefined : offset - 1
  }

  /**
   * Marks a block, once for each bit of `mark` (1 or 2). Returns false when it already has that mark. No block may be
   * added afterwards. Takes one more byte per slot.
   */
  mark(digest: Uint8Array, mark: 1 | 2): boolean {
    this.#marks ??= new Uint8Array(this.#offsets.length)
    const slot = this.#find(...keyOf(digest))
    const before = this.#marks[slot] ?? 0
    this.#marks[slot] = before | mark
    return (before & mark) === 0
  }

  /** Returns the slot of this key, or the empty slot where it belongs. */
  #find(a: number, b: number): number {
    const mask = this.#offsets.length - 1
    let slot = a & mask
    while (this.#offsets[slot] !== 0 && (this.#keys[2 * slot] !== a || this.#keys[2 * slot + 1] !== b)) {
      slot = (slot + 1) & mask
    }
    return slot
  }

  #set(slot: number, a: number, b: number, offset: number): void {
    this.#keys[2 * slot] = a
    this.#keys[2 * slot + 1] = b
    this.#offsets[slot] = offset
  }

  #grow(): void {
    const keys = this.#keys
    const offsets = this.#offsets
    this.#keys = new Uint32Array(2 * keys.length)
    this.#offsets = new Float64Array(2 * offsets.length)
    for (const [slot, offset] of offsets.entries()) {
      if (offset === 0) continue
      const a = keys[2 * slot] ?? 0
      const b = keys[2 * slot + 1] ?? 0
      this.#set(this.#find(a, b), a, b, offset)
    }
  }
}

function keyOf(digest: Uint8Array): [number, number] {
  const view = new DataView(digest.buffer, digest.byteOffset, 8)
  return [view.getUint32(0), view.getUint32(4)]
}

/** Slots at the start; a power of two, as always. */
const FIRST_SLOTS = 1024

/**
 * Where the blocks of a CAR lie: a table from the first 8 bytes of a digest to the offset of the first section that has such a digest. Takes 16 bytes a slot and
 * has 1.5 to 3 slots for each block that is there, so at most 48 bytes a block, and half as much again while it grows.
 */
export class CarIndex {
  #keys = new Uint32Array(2 * FIRST_SLOTS)
  /** Of the section, plus one: 0 is an empty slot. */
  #offsets = new Float64Array(FIRST_SLOTS)
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

  /** The digest found there still has to be compared. */
  offsetOf(digest: Uint8Array): number | undefined {
    const [a, b] = keyOf(digest)
    const offset = this.#offsets[this.#find(a, b)] ?? 0
    return offset === 0 ? undefined : offset - 1
  }

  /** The slot of this key, or the empty one where it belongs. */
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

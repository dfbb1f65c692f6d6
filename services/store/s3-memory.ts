import { BodyError } from './bodies.js'

/** Bytes that each body gets before any of its own have arrived. */
const LEAST = 64 * 1024

/** Bytes of each half. */
interface Granted {
  readonly taken: number
  readonly reserved: number
}

/**
 * The memory of bodies that are being written. Half of it is given for bytes that have arrived, in the order in which
 * they do. When that is used up, bodies wait in turn for a part of the other half with which they can be sent whole: so
 * some always can, and then give back all they have.
 */
export class BodyMemory {
  readonly #half: number
  readonly #maxWaitMs: number
  #free: number
  #reserve: number
  readonly #waiting: { readonly bytes: number; readonly enter: (granted: Granted) => void }[] = []

  /** @param maxWaitMs longest wait of a body */
  constructor(bytes: number, maxWaitMs: number) {
    this.#half = Math.ceil(bytes / 2)
    this.#free = this.#half
    this.#reserve = this.#half
    this.#maxWaitMs = maxWaitMs
  }

  /**
   * Resolves with the memory for the first bytes of a body. Throws BodyError when there is none for too long.
   * @param size of the body, or of the part that is sent first
   */
  async begin(size: number): Promise<Hold> {
    const hold = new Hold(this)
    if (!hold.grow(Math.min(size, LEAST))) await hold.reserve(size)
    return hold
  }

  /** Takes bytes that have arrived; false when there is no room for them. */
  take(bytes: number): boolean {
    if (bytes > this.#free) return false
    this.#free -= bytes
    return true
  }

  /** Takes bytes that are still to come, but not more than a half. Throws BodyError. */
  async wait(bytes: number): Promise<Granted> {
    const wanted = Math.min(bytes, this.#half)
    return (this.#waiting.length === 0 && this.#grant(wanted)) || this.#turn(wanted)
  }

  give({ taken, reserved }: Granted): void {
    this.#free += taken
    this.#reserve += reserved
    this.#admit()
  }

  #grant(bytes: number): Granted | undefined {
    if (this.take(bytes)) return { taken: bytes, reserved: 0 }
    if (bytes > this.#reserve) return undefined
    this.#reserve -= bytes
    return { taken: 0, reserved: bytes }
  }

  #turn(bytes: number): Promise<Granted> {
    return new Promise((resolve, reject) => {
      const waiting = {
        bytes,
        enter: (granted: Granted) => {
          clearTimeout(timer)
          resolve(granted)
        },
      }
      const timer = setTimeout(() => {
        this.#waiting.splice(this.#waiting.indexOf(waiting), 1)
        reject(new BodyError('unavailable', 'Too many bodies are being written to the store.'))
        this.#admit()
      }, this.#maxWaitMs)
      this.#waiting.push(waiting)
    })
  }

  #admit(): void {
    for (let next = this.#waiting[0]; next !== undefined; next = this.#waiting[0]) {
      const granted = this.#grant(next.bytes)
      if (granted === undefined) return
      this.#waiting.shift()
      next.enter(granted)
    }
  }
}

/** The memory of one body. */
export class Hold {
  readonly #memory: BodyMemory
  #taken = 0
  #reserved = 0
  /** Up to this many bytes are covered: more than are held when that is all there is. */
  #covered = 0
  #ended = false

  constructor(room: BodyMemory) {
    this.#memory = room
  }

  /** True when so many bytes are covered, or can be at once. */
  grow(bytes: number): boolean {
    const missing = bytes - this.#covered
    if (missing <= 0) return true
    if (!this.#memory.take(missing)) return false
    this.#taken += missing
    this.#covered = bytes
    return true
  }

  /** Resolves when so many bytes are covered. Throws BodyError. */
  async reserve(bytes: number): Promise<void> {
    const missing = bytes - this.#covered
    if (missing <= 0) return
    const granted = await this.#memory.wait(missing)
    if (this.#ended) return this.#memory.give(granted)
    this.#taken += granted.taken
    this.#reserved += granted.reserved
    this.#covered = Math.max(this.#covered, bytes)
  }

  /** Gives back what is not needed for so many bytes. */
  shrink(bytes: number): void {
    if (bytes >= this.#covered) return
    const reserved = Math.min(this.#reserved, Math.max(0, this.#taken + this.#reserved - bytes))
    const taken = Math.max(0, this.#taken - bytes)
    this.#reserved -= reserved
    this.#taken -= taken
    this.#covered = bytes
    this.#memory.give({ taken, reserved })
  }

  end(): void {
    this.#ended = true
    this.shrink(0)
  }
}

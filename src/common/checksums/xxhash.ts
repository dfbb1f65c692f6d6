import { createXXHash3, createXXHash64, createXXHash128 } from 'hash-wasm'

/**
 * One WebAssembly instance per kind, created once because creation is asynchronous. An instance keeps nothing between
 * two calls: every hash holds its own state (at most 580 bytes) and loads it for one synchronous call.
 */
const engines = Object.freeze({
  XXHASH64: await createXXHash64(),
  XXHASH3: await createXXHash3(),
  XXHASH128: await createXXHash128(),
})

export type XxHashName = keyof typeof engines

/**
 * https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md with seed 0. The digest is canonical: big-endian
 * bytes.
 */
export class XxHash {
  readonly #engine: (typeof engines)[XxHashName]
  #state: Uint8Array

  constructor(name: XxHashName) {
    this.#engine = engines[name]
    this.#engine.init()
    this.#state = this.#engine.save()
  }

  update(bytes: Uint8Array): void {
    this.#engine.load(this.#state)
    this.#engine.update(bytes)
    this.#state = this.#engine.save()
  }

  digest(): Buffer {
    this.#engine.load(this.#state)
    return Buffer.from(this.#engine.digest('binary'))
  }
}

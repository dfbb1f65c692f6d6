import type { IHasher } from 'hash-wasm'

/**
 * One WebAssembly instance per kind. It keeps nothing between two calls: every hash holds its own state (at most 580
 * bytes) and loads it for one synchronous call.
 */
const engines = new Map<XxHashName, IHasher>()

type XxHashName = 'XXHASH64' | 'XXHASH3' | 'XXHASH128'

/** Makes the instances, whose creation is asynchronous. */
export async function prepareXxHash(): Promise<void> {
  const { createXXHash3, createXXHash64, createXXHash128 } = await import('hash-wasm')
  const [xxHash64, xxHash3, xxHash128] = await Promise.all([createXXHash64(), createXXHash3(), createXXHash128()])
  engines.set('XXHASH64', xxHash64).set('XXHASH3', xxHash3).set('XXHASH128', xxHash128)
}

/** Whether `prepareXxHash` has made the instances, which the first hash needs. */
export function isXxHashPrepared(): boolean {
  return engines.size > 0
}

/**
 * https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md with seed 0. The digest is canonical: big-endian
 * bytes.
 */
export class XxHash {
  readonly #engine: IHasher
  #state: Uint8Array

  constructor(name: XxHashName) {
    const engine = engines.get(name)
    if (engine === undefined) throw new Error('prepareChecksum() has not been awaited.')
    this.#engine = engine
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

import type { Identity } from '../../api/identity.js'
import { CacheUse } from '../../common/metrics.js'
import { signingKey } from '../../common/sigv4.js'
import type { Scope } from './parsed-signature.js'

interface Entry {
  readonly secretAccessKey: string
  readonly key: Buffer
}

/**
 * LRU cache of derived signing keys. An identity uses one key for a day, so a few entries save four HMACs per request.
 */
export class SigningKeys {
  readonly #entries = new Map<string, Entry>()
  readonly #capacity: number
  /** Name of the entry that was used last. */
  #newest: string | undefined
  readonly #use: CacheUse

  constructor({ capacity = 1024, use = new CacheUse() } = {}) {
    this.#capacity = capacity
    this.#use = use
  }

  get(identity: Pick<Identity, 'accessKeyId' | 'secretAccessKey'>, scope: Scope): Buffer {
    const name = `${identity.accessKeyId}/${scope.text}`
    const { secretAccessKey } = identity
    const known = this.#entries.get(name)
    const hit = known?.secretAccessKey === secretAccessKey
    this.#use.count(hit)
    const entry =
      known && hit
        ? known
        : { secretAccessKey, key: signingKey(secretAccessKey, scope.date, scope.region, scope.service) }
    this.#remember(name, entry)
    return entry.key
  }

  /** A Map keeps insertion order, so its first entry is the least recently used one. */
  #remember(name: string, entry: Entry): void {
    if (this.#newest === name && this.#entries.get(name) === entry) return
    this.#newest = name
    this.#entries.delete(name)
    this.#entries.set(name, entry)
    if (this.#entries.size <= this.#capacity) return
    const oldest = this.#entries.keys().next()
    if (!oldest.done) this.#entries.delete(oldest.value)
  }
}

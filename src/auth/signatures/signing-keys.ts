import { LRUCache } from 'lru-cache'
import { CacheUse } from '../../../common/metrics.js'
import { signingKey } from '../../../common/sigv4.js'
import type { Identity } from '../../api/identity.js'
import type { Scope } from './parsed-signature.js'

interface Entry {
  readonly secretAccessKey: string
  readonly key: Buffer
}

/** Derived signing keys, kept: an identity uses one key for a day, so a few entries save four HMACs per request. */
export class SigningKeys {
  readonly #entries: LRUCache<string, Entry>
  readonly #use: CacheUse

  constructor({ capacity = 1024, use = new CacheUse() } = {}) {
    this.#entries = new LRUCache({ max: capacity })
    this.#use = use
  }

  get({ accessKeyId, secretAccessKey }: Pick<Identity, 'accessKeyId' | 'secretAccessKey'>, scope: Scope): Buffer {
    const name = `${accessKeyId}/${scope.text}`
    const known = this.#entries.get(name)
    const hit = known?.secretAccessKey === secretAccessKey
    this.#use.count(hit)
    if (known && hit) return known.key
    const key = signingKey(secretAccessKey, scope.date, scope.region, scope.service)
    this.#entries.set(name, { secretAccessKey, key })
    return key
  }
}

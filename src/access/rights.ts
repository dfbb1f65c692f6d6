import type { Right } from '../auth/caller.js'
import { compareUtf8 } from '../common/byte-order.js'

export type Access = 'read' | 'write'

/** The rights of an identity. Everything that no right allows is denied. */
export class Rights {
  readonly #rights: readonly Right[]

  constructor(rights: readonly Right[]) {
    this.#rights = rights
  }

  mayKey(bucket: string, key: string, access: Access): boolean {
    return this.#on(bucket, access).some(({ prefix = '' }) => key.startsWith(prefix))
  }

  mayWholeBucket(bucket: string, access: Access): boolean {
    return this.#on(bucket, access).some(({ prefix = '' }) => prefix === '')
  }

  /** True if the identity has this access to some existing or future key of the bucket. */
  maySome(bucket: string, access: Access): boolean {
    return this.#on(bucket, access).length > 0
  }

  /** True if the identity has any right in the bucket. */
  mayAnything(bucket: string): boolean {
    return this.#rights.some((right) => names(right, bucket))
  }

  /**
   * The prefixes of all accessible keys in the bucket, in UTF-8 byte order, none of them below another. `['']` means
   * every key.
   */
  prefixes(bucket: string, access: Access): readonly string[] {
    const sorted = this.#on(bucket, access)
      .map(({ prefix = '' }) => prefix)
      .sort(compareUtf8)
    const outermost: string[] = []
    for (const prefix of sorted) {
      const last = outermost.at(-1)
      if (last === undefined || !prefix.startsWith(last)) outermost.push(prefix)
    }
    return outermost
  }

  #on(bucket: string, access: Access): Right[] {
    return this.#rights.filter(
      (right) => names(right, bucket) && (right.access === access || right.access === 'readwrite'),
    )
  }
}

function names({ bucket: pattern }: Right, bucket: string): boolean {
  return pattern.endsWith('*') ? bucket.startsWith(pattern.slice(0, -1)) : bucket === pattern
}

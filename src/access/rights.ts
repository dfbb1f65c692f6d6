import { compareUtf8 } from '../../common/byte-order.js'
import { S3Error } from '../../common/errors/s3-error.js'
import type { Access } from '../api/access.js'
import type { Gateway } from '../api/gateway.js'
import type { Right } from '../api/identity.js'

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

/**
 * The owner of a bucket is the account whose own web.ListBuckets names it. An account that may read, list or write a
 * bucket by a policy of the gateway is not its owner. The answer is not cached, because a cached one could be about an
 * earlier bucket of the same name.
 */
export async function requireOwner(
  gateway: Pick<Gateway, 'listBuckets' | 'bucketExists'>,
  bucket: string,
): Promise<void> {
  const own = await gateway.listBuckets()
  if (own.some(({ name }) => name === bucket)) return
  if (!(await gateway.bucketExists(bucket))) throw new S3Error('NoSuchBucket', { fields: { BucketName: bucket } })
  throw new S3Error('AccessDenied', {
    message:
      'Only the account that owns the bucket may do this, and the bucket is not among the buckets of this account.',
  })
}

/** Throws AccessDenied unless one of the actions equals `name`, or is a prefix of it followed by `*`. */
export function requireAction(actions: readonly string[], name: string): void {
  const allowed = actions.some((action) =>
    action.endsWith('*') ? name.startsWith(action.slice(0, -1)) : name === action,
  )
  if (!allowed) throw denied(`make the call ${name}: the key needs this action`)
}

export function denied(what: string): S3Error {
  return new S3Error('AccessDenied', { message: `This access key has no right to ${what}.` })
}

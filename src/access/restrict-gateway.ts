import { S3Error } from '../errors/s3-error.js'
import type { Gateway } from '../gateway/gateway.js'
import { listReadable } from './list-readable.js'
import type { Access, Rights } from './rights.js'

/**
 * The gateway as far as `rights` go; everything an identity does passes here. Every method stands here by name, so that one that is added to Gateway does not
 * compile before somebody has decided who may call it. Nothing is told of what the identity may not see, not even whether it exists: AccessDenied.
 * @param look what looking at a key asks for: the right to read, or for what a write has to know of the key it is about to replace, the right to write
 */
export function restrictGateway(gateway: Gateway, rights: Rights, look: Access = 'read'): Gateway {
  const checked = async <T>(check: () => void, run: () => Promise<T>): Promise<T> => {
    check()
    return run()
  }
  const looking = (bucket: string, key: string) => requireKey(rights, bucket, key, look)
  const writing = (bucket: string, key: string) => requireKey(rights, bucket, key, 'write')
  return {
    // Of the gateway itself, not of anybody's data.
    features: () => gateway.features(),
    refusesKey: (key) => gateway.refusesKey(key),
    ready: () => gateway.ready(),

    listBuckets: async () => (await gateway.listBuckets()).filter(({ name }) => rights.mayAnything(name)),
    bucketExists: (bucket) =>
      checked(
        () => requireAnything(rights, bucket),
        () => gateway.bucketExists(bucket),
      ),
    makeBucket: (bucket) =>
      checked(
        () => requireWholeBucket(rights, bucket, 'write'),
        () => gateway.makeBucket(bucket),
      ),
    deleteBucket: (bucket) =>
      checked(
        () => requireWholeBucket(rights, bucket, 'write'),
        () => gateway.deleteBucket(bucket),
      ),
    list: (bucket, query) => listReadable(gateway, rights.prefixes(bucket, look), bucket, query),

    stat: (bucket, key) =>
      checked(
        () => looking(bucket, key),
        () => gateway.stat(bucket, key),
      ),
    download: (bucket, key, range) =>
      checked(
        () => looking(bucket, key),
        () => gateway.download(bucket, key, range),
      ),
    upload(bucket, key, length, attributes) {
      writing(bucket, key)
      return gateway.upload(bucket, key, length, attributes)
    },
    // Those that say something of his own keys.
    async listPolicies(bucket) {
      requireAnything(rights, bucket)
      const own = [...rights.prefixes(bucket, 'read'), ...rights.prefixes(bucket, 'write')]
      return (await gateway.listPolicies(bucket)).filter(({ prefix }) =>
        own.some((one) => one.startsWith(prefix) || prefix.startsWith(one)),
      )
    },
    // Whoever opens a bucket to everybody opens it to himself too: he needs every right that he could give.
    setPolicy: (bucket, prefix, policy) =>
      checked(
        () => {
          requireWholeBucket(rights, bucket, 'read')
          requireWholeBucket(rights, bucket, 'write')
        },
        () => gateway.setPolicy(bucket, prefix, policy),
      ),
    presignedGet: (bucket, key, expirySeconds, host) =>
      checked(
        () => requireKey(rights, bucket, key, 'read'),
        () => gateway.presignedGet(bucket, key, expirySeconds, host),
      ),
    // A call about no bucket is about the network, or about a deal that whoever makes the call has looked for among those of the identity's buckets.
    call: (call) =>
      checked(
        () => {
          if (call.bucket === undefined) return
          if (call.key === undefined) requireWholeBucket(rights, call.bucket, call.access)
          else requireKey(rights, call.bucket, call.key, call.access)
        },
        () => gateway.call(call),
      ),
    remove: (bucket, key) =>
      checked(
        () => writing(bucket, key),
        () => gateway.remove(bucket, key),
      ),
  }
}

/**
 * Throws AccessDenied. Also for a key with `.` or `..` among its elements: it lies below what it begins with only as long as nothing on the way to the gateway
 * takes it for a path and resolves it.
 */
export function requireKey(rights: Rights, bucket: string, key: string, access: Access): void {
  if (/(^|[/\\])\.\.?($|[/\\])/.test(key)) throw denied('use keys with the path element "." or ".."')
  if (!rights.mayKey(bucket, key, access)) throw denied(`${access} this key`)
}

/** Throws AccessDenied. */
export function requireWholeBucket(rights: Rights, bucket: string, access: Access): void {
  if (!rights.mayWholeBucket(bucket, access)) throw denied(`${access} the whole bucket`)
}

function requireAnything(rights: Rights, bucket: string): void {
  if (!rights.mayAnything(bucket)) throw denied('use this bucket')
}

export function denied(what: string): S3Error {
  return new S3Error('AccessDenied', { message: `This access key has no right to ${what}.` })
}

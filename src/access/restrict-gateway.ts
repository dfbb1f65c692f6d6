import type { Access } from '../api/access.js'
import type { Gateway } from '../api/gateway.js'
import { hasDotElement } from '../gateway/keys.js'
import { listReadable } from './list-readable.js'
import { denied, type Rights } from './rights.js'

/**
 * Restricts the gateway to `rights`; everything an identity does passes here. Every method is listed by name, so that a
 * method added to Gateway does not compile until its rights are decided. Whether something exists that the identity may
 * not see is not revealed: AccessDenied.
 * @param look the right that looking at a key requires: read, or write where a write looks at the key that it is about
 * to replace
 */
export function restrictGateway(gateway: Gateway, rights: Rights, look: Access = 'read'): Gateway {
  const checked = async <T>(check: () => void, run: () => Promise<T>): Promise<T> => {
    check()
    return run()
  }
  const looking = (bucket: string, key: string) => requireKey(rights, bucket, key, look)
  const writing = (bucket: string, key: string) => requireKey(rights, bucket, key, 'write')
  return {
    // These concern the gateway itself, not the data of a user.
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
    // Only the policies that concern the identity's own keys.
    async listPolicies(bucket) {
      requireAnything(rights, bucket)
      const own = [...rights.prefixes(bucket, 'read'), ...rights.prefixes(bucket, 'write')]
      return (await gateway.listPolicies(bucket)).filter(({ prefix }) =>
        own.some((one) => one.startsWith(prefix) || prefix.startsWith(one)),
      )
    },
    hiddenAccess: (bucket, entries, places) =>
      checked(
        () => (places ? requireAnything(rights, bucket) : requireWholeBucket(rights, bucket, 'read')),
        () => gateway.hiddenAccess(bucket, entries, places),
      ),
    // A policy for everybody also applies to the identity, which must therefore hold every right that it could grant.
    setPolicy: (bucket, prefix, policy) =>
      checked(
        () => {
          requireWholeBucket(rights, bucket, 'read')
          requireWholeBucket(rights, bucket, 'write')
        },
        () => gateway.setPolicy(bucket, prefix, policy),
      ),
    uploadQuota: () => gateway.uploadQuota(),
    presignedGet: (bucket, key, expirySeconds, host) =>
      checked(
        () => requireKey(rights, bucket, key, 'read'),
        () => gateway.presignedGet(bucket, key, expirySeconds, host),
      ),
    // A call without a bucket concerns the network, or a deal that the calling code has found among those of the
    // identity's buckets.
    call: (call) =>
      checked(
        () => {
          if (call.bucket === undefined) return
          if (call.key === undefined) requireWholeBucket(rights, call.bucket, call.access)
          else requireKey(rights, call.bucket, call.key, call.access)
        },
        () => gateway.call(call),
      ),
    remove: (bucket, key, order) =>
      checked(
        () => writing(bucket, key),
        () => gateway.remove(bucket, key, order),
      ),
  }
}

/** Throws AccessDenied, also for a key that could leave its prefix on the way to the gateway. */
export function requireKey(rights: Rights, bucket: string, key: string, access: Access): void {
  if (hasDotElement(key)) throw denied('use keys with the path element "." or ".."')
  if (!rights.mayKey(bucket, key, access)) throw denied(`${access} this key`)
}

/** Throws AccessDenied. */
export function requireWholeBucket(rights: Rights, bucket: string, access: Access): void {
  if (!rights.mayWholeBucket(bucket, access)) throw denied(`${access} the whole bucket`)
}

/** Throws AccessDenied unless the rights reach at least one key of the bucket. */
export function requireSome(rights: Rights, bucket: string, access: Access | 'any'): void {
  if (access === 'any') requireAnything(rights, bucket)
  else if (!rights.maySome(bucket, access)) throw denied(`${access} any key of this bucket`)
}

function requireAnything(rights: Rights, bucket: string): void {
  if (!rights.mayAnything(bucket)) throw denied('use this bucket')
}

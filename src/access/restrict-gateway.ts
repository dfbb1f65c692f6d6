import type { Access } from '../api/access.js'
import type { Gateway } from '../api/gateway.js'
import { hasDotElement } from '../gateway/keys.js'
import { type GatewayUse, wrapGateway } from '../gateway/wrap-gateway.js'
import { listReadable } from './list-readable.js'
import { denied, type Rights } from './rights.js'

/**
 * Restricts the gateway to `rights`; everything an identity does passes here. Whether something exists that the
 * identity may not see is not revealed: AccessDenied.
 * @param look the right that looking at a key requires: read, or write where a write looks at the key that it is about
 * to replace
 */
export function restrictGateway(gateway: Gateway, rights: Rights, look: Access = 'read'): Gateway {
  const allowed = (use: GatewayUse): Gateway => {
    requireNeeded(rights, use, look)
    return gateway
  }
  return wrapGateway(allowed, {
    listBuckets: async () => (await gateway.listBuckets()).filter(({ name }) => rights.mayAnything(name)),
    async bucketNumbers(buckets) {
      for (const bucket of buckets) requireWholeBucket(rights, bucket, 'read')
      return gateway.bucketNumbers(buckets)
    },
    list: (bucket, query) => listReadable(gateway, rights.prefixes(bucket, look), bucket, query),
    // The answer has the policies that concern the identity's own keys, and no other.
    async listPolicies(bucket) {
      requireAnything(rights, bucket)
      const own = [...rights.prefixes(bucket, 'read'), ...rights.prefixes(bucket, 'write')]
      return (await gateway.listPolicies(bucket)).filter(({ prefix }) =>
        own.some((one) => one.startsWith(prefix) || prefix.startsWith(one)),
      )
    },
    // A right to write lets a key pair add versions and delete markers. What was there before stays.
    async remove(bucket, key, order, version) {
      requireKey(rights, bucket, key, 'write')
      if (version) throw denied('delete versions')
      return gateway.remove(bucket, key, order)
    },
    upload(bucket, key, length, attributes) {
      requireKey(rights, bucket, key, 'write')
      if (attributes.lock) throw denied('lock objects')
      return gateway.upload(bucket, key, length, attributes)
    },
    async setLock() {
      throw denied('lock objects')
    },
    async requireLockable() {
      throw denied('lock objects')
    },
    async setLockRule() {
      throw denied('lock objects')
    },
    // While versioning is suspended, a write replaces the version without an id.
    async setVersioning() {
      throw denied('change the versioning of buckets')
    },
    async hiddenAccess(bucket, entries, places) {
      if (places) requireAnything(rights, bucket)
      else requireWholeBucket(rights, bucket, 'read')
      return gateway.hiddenAccess(bucket, entries, places)
    },
  })
}

function requireNeeded(rights: Rights, { bucket, key, needs }: GatewayUse, look: Access): void {
  if (bucket === undefined || needs === 'nothing') return
  if (needs === 'some') requireAnything(rights, bucket)
  else if (needs === 'both') {
    requireWholeBucket(rights, bucket, 'read')
    requireWholeBucket(rights, bucket, 'write')
  } else {
    const access = needs === 'look' ? look : needs
    if (key === undefined) requireWholeBucket(rights, bucket, access)
    else requireKey(rights, bucket, key, access)
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

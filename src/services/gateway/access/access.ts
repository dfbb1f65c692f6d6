import type { Account } from '../accounts/accounts.js'
import type { GatewayContext } from '../context.js'
import { GatewayError } from '../errors.js'
import type { BucketRow } from '../store/buckets.js'
import type { Policies, Policy } from '../store/policies.js'

/**
 * The caller: an account, which may do everything in its own buckets, or an anonymous one. Elsewhere both may do what
 * the policies of the bucket allow.
 */
export type Identity = Account | 'anonymous'

/** Actions that policies allow. `list` applies to a prefix, the others to a key. */
export type Action = 'list' | 'get' | 'put' | 'delete'

const grants: Record<Policy, readonly Action[]> = {
  readonly: ['list', 'get'],
  writeonly: ['put', 'delete'],
  readwrite: ['list', 'get', 'put', 'delete'],
}

/**
 * True when `identity` may perform the action. A policy applies to every key that starts with its prefix. For listings
 * it applies to that very prefix only, or to any prefix where the policy's prefix is empty (minio-go
 * pkg/policy/bucket-policy.go).
 * @param bucket undefined when it does not exist, which an account may be told
 */
export function isAllowed(
  policies: Policies,
  identity: Identity,
  action: Action,
  bucket: BucketRow | undefined,
  name: string,
): boolean {
  if (identity !== 'anonymous' && (bucket === undefined || owns(identity, bucket))) return true
  if (bucket === undefined) return false
  return policies.of(bucket.id).some(({ prefix, policy }) => {
    if (!grants[policy].includes(action)) return false
    return action === 'list' ? prefix === '' || prefix === name : name.startsWith(prefix)
  })
}

export function owns(identity: Identity, bucket: BucketRow): boolean {
  return identity !== 'anonymous' && identity.id === bucket.owner
}

/** The id of the caller's account; 0 for anonymous callers. */
export function callerOf(identity: Identity): number {
  return identity === 'anonymous' ? 0 : identity.id
}

/** The error for a caller that may not do this. */
export function refusalOf(identity: Identity): GatewayError {
  return new GatewayError(identity === 'anonymous' ? 'Authentication' : 'NotPermitted')
}

/** Like `refusalOf`, for an upload or download. */
export function bodyRefusalOf({ quirks }: Pick<GatewayContext, 'quirks'>, identity: Identity): GatewayError {
  return quirks.has('foreign-auth-failures') ? new GatewayError('Authentication') : refusalOf(identity)
}

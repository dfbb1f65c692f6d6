import type { Policies, Policy } from '../store/policies.js'

/** Who asks: the account's owner, who may do everything, or anybody, who may do what the bucket's policies say. */
export type Identity = 'owner' | 'anonymous'

/** What policies decide about; `list` is asked of a prefix, the others of a key. */
export type Action = 'list' | 'get' | 'put' | 'delete'

const grants: Record<Policy, readonly Action[]> = {
  readonly: ['list', 'get'],
  writeonly: ['put', 'delete'],
  readwrite: ['list', 'get', 'put', 'delete'],
}

/**
 * True when `identity` may do this. A policy holds for every key that starts with its prefix; listing only for that very prefix, and for any where
 * the policy's prefix is empty (minio-go pkg/policy/bucket-policy.go).
 * @param bucket id; undefined when there is no such bucket
 */
export function isAllowed(
  policies: Policies,
  identity: Identity,
  action: Action,
  bucket: number | undefined,
  name: string,
): boolean {
  if (identity === 'owner') return true
  if (bucket === undefined) return false
  return policies.of(bucket).some(({ prefix, policy }) => {
    if (!grants[policy].includes(action)) return false
    return action === 'list' ? prefix === '' || prefix === name : name.startsWith(prefix)
  })
}

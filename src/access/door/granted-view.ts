import type { RequireOwner } from '../require-owner.js'
import type { Access } from '../rights.js'
import type { Grants } from './grants.js'

/** The checks of a caller's own rights. */
export interface Checks {
  readonly requireWholeBucket: (bucket: string, access: Access) => void
  readonly requireKey: (bucket: string, key: string, access: Access) => void
  readonly requireSome: (bucket: string, access: Access | 'any') => void
  readonly requireAction: (name: string) => void
  readonly requireOwner: RequireOwner
}

/**
 * The checks of a caller who was granted something. Rights of an identity keep restricting it: a grant replaces only
 * the refusal that every anonymous caller gets, and the question for the owner.
 */
export function grantedChecks(base: Checks, grants: Grants, signed: boolean): Checks {
  const unless = (granted: boolean, check: () => void) => {
    if (signed || !granted) check()
  }
  return {
    requireWholeBucket: (bucket, access) =>
      unless(grants.find(bucket, undefined) !== undefined, () => base.requireWholeBucket(bucket, access)),
    requireKey: (bucket, key, access) =>
      unless(grants.find(bucket, key) !== undefined, () => base.requireKey(bucket, key, access)),
    requireSome: (bucket, access) =>
      unless(grants.inBucket(bucket) !== undefined, () => base.requireSome(bucket, access)),
    requireAction: base.requireAction,
    async requireOwner(bucket, instead) {
      if (grants.asOwner(bucket)) return
      if (instead && grants.find(bucket, instead.key, [instead.action.toLowerCase()])) return
      return base.requireOwner(bucket)
    },
  }
}

import type { Acl, Permission } from '../../access/decision/acl.js'
import type { PublicGrants } from '../policy/acl.js'

/** The ACL of what belongs to its owner alone. */
export function privateAcl(owner: string): Acl {
  return { owner, grants: [{ grantee: { id: owner }, permission: 'FULL_CONTROL' }] }
}

/** Adds what the gateway itself grants everybody. */
export function withPublic(acl: Acl, granted: PublicGrants): Acl {
  const has = (permission: Permission) =>
    acl.grants.some(
      ({ grantee, permission: given }) =>
        'group' in grantee && grantee.group === 'AllUsers' && (given === permission || given === 'FULL_CONTROL'),
    )
  const more = (['READ', 'WRITE'] as const).filter((permission) => granted[permission] && !has(permission))
  return {
    ...acl,
    grants: [...acl.grants, ...more.map((permission) => ({ grantee: { group: 'AllUsers' as const }, permission }))],
  }
}

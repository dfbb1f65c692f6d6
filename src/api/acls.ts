import type { Acl, Permission } from './access.js'

/** A grant with its grantee as S3's documents name it. */
type ShownGrant =
  | { readonly canonicalId: string; readonly type: 'CanonicalUser'; readonly permission: Permission }
  | { readonly uri: string; readonly type: 'Group'; readonly permission: Permission }

/** The ACLs of objects. */
export interface Acls {
  /**
   * The ACL to store with an object that the caller writes; undefined for one that belongs to the owner of the bucket
   * alone. Where ACLs are disabled, it is checked that the canned one says what is the case anyway.
   * @param canned name of a canned ACL: `bucket-owner-full-control`
   * @throws S3Error InvalidArgument, AccessDenied, AccessControlListNotSupported
   */
  ofWrite(place: { readonly bucket: string; readonly key: string }, canned: string): Promise<Acl | undefined>
  /**
   * The grants of an object as S3 shows them.
   * @param acl that of the object; undefined for an object that belongs to its owner alone
   * @param owner canonical id of its owner
   */
  grants(acl: Acl | undefined, owner: string): readonly ShownGrant[]
}

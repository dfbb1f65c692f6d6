import { uriOf } from '../../access/values/acl-values.js'
import type { Acls } from '../../api/acls.js'
import type { Context } from '../../api/context.js'
import { aclOfWrite } from './acl-operations.js'
import { privateAcl } from './acl-syntax.js'

/** The ACLs of objects, for work that is not a request about an ACL. */
export function aclsOf(context: Context): Acls {
  return {
    ofWrite: ({ bucket, key }, canned) => aclOfWrite({ bucket, key, headers: { 'x-amz-acl': canned } }, context),
    grants: (acl, owner) =>
      (acl ?? privateAcl(owner)).grants.map(({ grantee, permission }) =>
        'id' in grantee
          ? { canonicalId: grantee.id, type: 'CanonicalUser', permission }
          : { uri: uriOf(grantee.group), type: 'Group', permission },
      ),
  }
}

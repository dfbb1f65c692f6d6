import { requireChildren, type XmlNode } from '../../../common/xml.js'

/** Throws MalformedXML for what an AccessControlPolicy cannot hold beside its grants: none must be ignored. */
export function requirePolicyChildren(root: XmlNode): void {
  requireChildren(root, 'AccessControlPolicy', { once: ['Owner', 'AccessControlList'] })
  for (const owner of root.children.get('Owner') ?? []) requireChildren(owner, 'Owner', { once: ['ID', 'DisplayName'] })
  for (const list of root.children.get('AccessControlList') ?? [])
    requireChildren(list, 'AccessControlList', { many: ['Grant'] })
}

/** Throws MalformedXML. */
export function requireGrantChildren(grant: XmlNode): void {
  requireChildren(grant, 'Grant', { once: ['Grantee', 'Permission'] })
  // S3 also takes the type as an element, which adds nothing to the names.
  for (const grantee of grant.children.get('Grantee') ?? [])
    requireChildren(grantee, 'Grantee', { once: ['ID', 'DisplayName', 'URI', 'EmailAddress', 'Type'] })
}

import type { Group } from '../../access/decision/acl.js'
import { ANONYMOUS_ID } from '../../auth/identities/canonical-id.js'

const URIS: Readonly<Record<Group, string>> = {
  AllUsers: 'http://acs.amazonaws.com/groups/global/AllUsers',
  AuthenticatedUsers: 'http://acs.amazonaws.com/groups/global/AuthenticatedUsers',
  LogDelivery: 'http://acs.amazonaws.com/groups/s3/LogDelivery',
}

export function uriOf(group: Group): string {
  return URIS[group]
}

/** Returns the group of a URI; undefined for an unknown one. */
export function groupOf(uri: string): Group | undefined {
  return (Object.keys(URIS) as Group[]).find((group) => URIS[group] === uri)
}

export function isCanonicalId(id: string): boolean {
  return /^[0-9a-f]{64}$/.test(id) || id === ANONYMOUS_ID
}

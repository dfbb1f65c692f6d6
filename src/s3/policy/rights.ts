import { allows, type PublicAction } from '../../gateway/account/policies.js'
import type { PolicyEntry } from '../../gateway/gateway.js'
import { LIST_ACTION, LOCATION_ACTION, type ObjectAction, READ_ACTIONS, UPLOADS_ACTION } from './actions.js'

/** The smallest right that a policy can grant everybody. */
export type Right =
  /** An action on every object whose key has the prefix. */
  | { readonly kind: 'object'; readonly action: ObjectAction; readonly prefix: string }
  /** Listing with exactly this prefix; undefined for any. */
  | { readonly kind: 'list'; readonly prefix: string | undefined }
  /** Listing the multipart uploads. */
  | { readonly kind: 'uploads' }
  | { readonly kind: 'location' }

/** Returns true if the first right implies the other. */
export function covers(one: Right, other: Right): boolean {
  if (one.kind === 'object')
    return other.kind === 'object' && one.action === other.action && other.prefix.startsWith(one.prefix)
  if (one.kind === 'list') return other.kind === 'list' && (one.prefix === undefined || one.prefix === other.prefix)
  return one.kind === other.kind
}

/** Returns true if these rules of the gateway grant everybody the right. */
export function gives(entries: readonly PolicyEntry[], right: Right): boolean {
  switch (right.kind) {
    case 'object':
      return allows(entries, gatewayAction(right.action), right.prefix)
    case 'list':
      return allows(entries, 'list', right.prefix ?? '')
    case 'uploads':
      return entries.some(({ policy }) => policy !== 'readonly')
    case 'location':
      return entries.length > 0
  }
}

function gatewayAction(action: ObjectAction): PublicAction {
  return (READ_ACTIONS as readonly string[]).includes(action) ? 'get' : 'put'
}

/** Formats a right in the terms of a policy document. */
export function describeRight(right: Right, bucket: string): string {
  const arn = `arn:aws:s3:::${bucket}`
  switch (right.kind) {
    case 'object':
      return `${right.action} on ${arn}/${right.prefix}*`
    case 'list':
      return `${LIST_ACTION} on ${arn}${right.prefix === undefined ? '' : ` with the condition that s3:prefix is "${right.prefix}"`}`
    case 'uploads':
      return `${UPLOADS_ACTION} on ${arn}`
    case 'location':
      return `${LOCATION_ACTION} on ${arn}`
  }
}

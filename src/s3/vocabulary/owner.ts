import { canonicalId, idOf, OWN_ID } from '../../auth/identities/canonical-id.js'
import { element } from '../../common/xml/xml.js'
import type { Context } from '../../server/context.js'
import type { UploadRecord } from '../../state/state.js'

/**
 * Returns the canonical user id of the owner of the caller's buckets, in AWS's form (64 hex digits): one per gateway
 * account, shared by all its key pairs. It is stable and reveals no secret.
 */
export function ownerId(context: Pick<Context, 'caller'>): string {
  return context.caller ? canonicalId(context.caller.identity) : OWN_ID
}

export function ownerElement(context: Pick<Context, 'caller' | 'server'>): string {
  const id = ownerId(context)
  return person('Owner', id, context.server.accountName(id))
}

/** Returns the initiator of a multipart upload, which is the key pair. */
export function initiatorElement({ accessKeyId }: Pick<UploadRecord, 'accessKeyId'>): string {
  return person('Initiator', idOf(accessKeyId || 'anonymous'), accessKeyId || 'anonymous')
}

function names(id: string, displayName: string | undefined): string {
  return element('ID', id) + element('DisplayName', displayName)
}

function person(name: string, id: string, displayName: string | undefined): string {
  return `<${name}>${names(id, displayName)}</${name}>`
}

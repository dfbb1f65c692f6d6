import { createHash } from 'node:crypto'
import type { Context } from '../../context.js'
import { element } from '../../xml.js'

/**
 * The canonical user id that owns what the caller sees, in AWS's form (64 hex digits): one for each gateway account, however many key pairs act as it. Stable, and says
 * nothing of any secret.
 */
export function ownerId(context: Pick<Context, 'caller'>): string {
  return idOf(`account:${context.caller?.identity.account?.accessKey ?? ''}`)
}

export function ownerElement(context: Pick<Context, 'caller'>): string {
  return person('Owner', ownerId(context), 'dealgate')
}

/** Who began a multipart upload: the key pair itself. */
export function initiatorElement(context: Pick<Context, 'caller'>): string {
  const accessKeyId = context.caller?.identity.accessKeyId ?? 'anonymous'
  return person('Initiator', idOf(accessKeyId), accessKeyId)
}

/** `<ID>` and `<DisplayName>` of the owner. */
export function ownerNames(context: Pick<Context, 'caller'>): string {
  return names(ownerId(context), 'dealgate')
}

function names(id: string, displayName: string): string {
  return element('ID', id) + element('DisplayName', displayName)
}

function person(name: string, id: string, displayName: string): string {
  return `<${name}>${names(id, displayName)}</${name}>`
}

function idOf(text: string): string {
  return createHash('sha256').update(`dealgate:${text}`).digest('hex')
}

import { createHash } from 'node:crypto'
import type { Context } from '../../context.js'
import { element } from '../../xml.js'

/** A stable canonical user id of the caller, in AWS's form (64 hex digits); says nothing of the secret. */
export function ownerId(context: Context): string {
  return createHash('sha256')
    .update(`dealgate:${context.caller?.identity.accessKeyId ?? 'anonymous'}`)
    .digest('hex')
}

export function ownerElement(context: Context, name = 'Owner'): string {
  return `<${name}>${element('ID', ownerId(context))}${element('DisplayName', context.caller?.identity.accessKeyId ?? 'anonymous')}</${name}>`
}

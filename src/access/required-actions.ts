import type { RequestedAction, Tag } from '../api/access.js'
import type { StorageClasses } from '../api/context.js'
import type { AnyOperation } from '../api/operation.js'
import type { RequestHead } from '../api/request.js'
import type { UploadRecord } from '../api/state.js'
import { actionNames } from '../plugins/actions.js'
import { isHotClass } from '../plugins/storage-class.js'

/** ACLs that give only the owner of the bucket more: they need no right to set ACLs. */
const OWN_ACLS = ['private', 'bucket-owner-full-control', 'bucket-owner-read']

/**
 * Returns the actions that a request asks for on its own resource: those of its operation, and those that its headers
 * add to a write. Actions on other resources, and on keys in the body, are for the operation to ask.
 */
export function requiredActions(
  operation: AnyOperation,
  plugin: string,
  head: RequestHead,
  classes: StorageClasses,
  tagsOf: (headers: RequestHead['headers']) => readonly Tag[] | undefined,
  upload?: Pick<UploadRecord, 'asked' | 'tags'>,
): readonly RequestedAction[] {
  const { action } = operation
  if (typeof action === 'object' && 'each' in action) return []
  const { bucket, key, headers } = head
  const names = [...actionNames(action, plugin)]
  const writes = names.includes('s3:PutObject') && (operation.on.query ?? []).every((name) => name === 'uploads')
  if (writes) names.push(...(ofHeaders(headers, classes) as typeof names))
  const prefix = key === undefined ? (head.query.get('prefix') ?? '') : undefined
  const requested = writes ? tagsOf(headers) : upload?.tags
  const more = upload ? { requested, headers: headersOfPart(headers, upload) } : requested && { requested }
  return names.map((name) => ({ bucket, key, prefix, ...ofWrite(name, more, writes) }))
}

/** An action and its facts: the ACL that a write sets is that of the object which it makes. */
export function ofWrite(
  action: string,
  more: RequestedAction['more'],
  writes = true,
): Pick<RequestedAction, 'action' | 'more'> {
  const all = writes && action === 's3:PutObjectAcl' ? { ...more, ofNew: true } : more
  return { action, ...(all && { more: all }) }
}

/** True for a request that continues a multipart upload: the upload's own headers describe the object. */
export function continuesUpload({ action, on }: AnyOperation): boolean {
  return action === 's3:PutObject' && (on.query ?? []).includes('uploadId')
}

const OF_UPLOAD = /^x-amz-(acl|grant-.*|storage-class|server-side-encryption(-aws-kms-key-id|-customer-algorithm)?)$/

/** The headers of the request that begins a multipart upload by which conditions judge its later requests, too. */
export function headersOfUpload(headers: RequestHead['headers']): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) => (OF_UPLOAD.test(name) ? [[name, String(value)]] : [])),
  )
}

/** What a later request claims about the object has no effect, so no condition holds by it. */
function headersOfPart(headers: RequestHead['headers'], { asked }: Pick<UploadRecord, 'asked'>) {
  const own = Object.entries(headers).filter(([name]) => !OF_UPLOAD.test(name))
  return { ...Object.fromEntries(own), ...asked }
}

/** True if the headers of a write hold an ACL that needs the right to set ACLs. */
export function givesMore(headers: RequestHead['headers']): boolean {
  const acl = headers['x-amz-acl']
  const grants = Object.keys(headers).some((name) => name.startsWith('x-amz-grant-'))
  return grants || (acl !== undefined && !OWN_ACLS.includes(String(acl)))
}

/** Returns the actions that the headers of a write need besides `s3:PutObject`. */
export function ofHeaders(headers: RequestHead['headers'], classes: StorageClasses): string[] {
  const names: string[] = []
  if (givesMore(headers)) names.push('s3:PutObjectAcl')
  if (headers['x-amz-tagging'] !== undefined) names.push('s3:PutObjectTagging')
  if (String(headers['x-amz-bypass-governance-retention']).toLowerCase() === 'true')
    names.push('s3:BypassGovernanceRetention')
  const storageClass = headers['x-amz-storage-class']
  if (storageClass !== undefined && !isHotClass(String(storageClass))) {
    const paid = classes.get(String(storageClass))?.action
    if (paid !== undefined) names.push(paid)
  }
  return names
}

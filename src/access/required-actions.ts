import type { RequestedAction } from '../api/access.js'
import type { Context, StorageClasses } from '../api/context.js'
import type { AnyOperation } from '../api/operation.js'
import type { RequestHead } from '../api/request.js'
import type { UploadRecord } from '../api/uploads.js'
import { taggingOfHeader } from '../http/tags.js'
import { actionNames } from '../plugins/actions.js'
import { isHotClass } from '../plugins/storage-class.js'
import type { Row } from '../plugins/table.js'
import { hasPolicies } from './documents.js'

/** ACLs that give only the owner of the bucket more: they need no right to set ACLs. */
const OWN_ACLS = ['private', 'bucket-owner-full-control', 'bucket-owner-read']

/**
 * Returns the actions that a request asks for on its own resource: those of its operation, and those that its headers
 * add to a write. Actions on other resources, and on keys in the body, are for the operation to ask.
 */
export function requiredActions(
  { operation, plugin }: Row,
  head: RequestHead,
  classes: StorageClasses,
  upload?: Pick<UploadRecord, 'asked' | 'tags'>,
): readonly RequestedAction[] {
  const { action } = operation
  if (typeof action === 'object' && 'each' in action) return []
  const { bucket, key, headers } = head
  const versionId = versionOf(operation, head)
  const names: string[] = actionNames(action, plugin).map((name) => (versionId === undefined ? name : ofVersion(name)))
  const writes = names.includes('s3:PutObject') && (operation.on.query ?? []).every((name) => name === 'uploads')
  if (writes) names.push(...ofHeaders(headers, classes))
  if (names.includes(DELETE_VERSION) && bypassesRetention(headers)) names.push(BYPASS)
  const prefix = key === undefined ? (head.query.get('prefix') ?? '') : undefined
  const requested = writes ? taggingOfHeader(headers) : upload?.tags
  const facts = upload ? { requested, headers: headersOfPart(headers, upload) } : requested && { requested }
  const more = versionId === undefined ? facts : { ...facts, versionId }
  return names.map((name) => ({ bucket, key, prefix, ...ofWrite(name, more, writes) }))
}

const DELETE_VERSION = 's3:DeleteObjectVersion'
const BYPASS = 's3:BypassGovernanceRetention'

/**
 * The actions that S3 has for a version where the request names one, `null` included:
 * https://docs.aws.amazon.com/AmazonS3/latest/userguide/using-with-s3-policy-actions.html
 */
const OF_VERSION: ReadonlyMap<string, string> = new Map([
  ['s3:GetObject', 's3:GetObjectVersion'],
  ['s3:GetObjectAttributes', 's3:GetObjectVersionAttributes'],
  ['s3:GetObjectTagging', 's3:GetObjectVersionTagging'],
  ['s3:PutObjectTagging', 's3:PutObjectVersionTagging'],
  ['s3:DeleteObjectTagging', 's3:DeleteObjectVersionTagging'],
  ['s3:GetObjectAcl', 's3:GetObjectVersionAcl'],
  ['s3:PutObjectAcl', 's3:PutObjectVersionAcl'],
  ['s3:DeleteObject', DELETE_VERSION],
])

/** Returns the action on one version of an object, which is the same for some. */
export function ofVersion(action: string): string {
  return OF_VERSION.get(action) ?? action
}

/** An action on an object, or on the version of it that the request names. */
export function askedOf(
  action: string,
  { bucket, key, versionId }: { readonly bucket: string; readonly key: string; readonly versionId: string | undefined },
  more?: RequestedAction['more'],
): RequestedAction {
  if (versionId === undefined) return { action, bucket, key, more }
  return { action: ofVersion(action), bucket, key, more: { ...more, versionId } }
}

/** What a removal asks for whose object, and version, the body of a request names. */
export function ofRemoval(place: Parameters<typeof askedOf>[1], headers: RequestHead['headers']): RequestedAction[] {
  const passes = place.versionId !== undefined && bypassesRetention(headers)
  return ['s3:DeleteObject', ...(passes ? [BYPASS] : [])].map((action) => askedOf(action, place))
}

/** True if the request is to go past a retention in the mode GOVERNANCE, which needs an action of its own. */
export function bypassesRetention(headers: RequestHead['headers']): boolean {
  return String(headers['x-amz-bypass-governance-retention']).toLowerCase() === 'true'
}

function versionOf({ on, call }: AnyOperation, { query }: RequestHead): string | undefined {
  return call || !on.params?.includes('versionId') ? undefined : query.get('versionId')
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

/** Returns the upload that the request names, if a document can decide by it. */
export async function uploadOf({ bucket, key, query }: RequestHead, { caller, authorizer, state }: Context) {
  if (bucket === undefined || (!(caller && hasPolicies(caller.identity)) && !(await authorizer.documents(bucket))))
    return undefined
  const upload = await state.uploads.get(query.get('uploadId') ?? '')
  return upload?.bucket === bucket && upload.key === key ? upload : undefined
}

const OF_UPLOAD =
  /^x-amz-(acl|grant-.*|storage-class|object-lock-.*|server-side-encryption(-aws-kms-key-id|-customer-algorithm)?)$/

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
  if (headers['x-amz-object-lock-mode'] !== undefined || headers['x-amz-object-lock-retain-until-date'] !== undefined)
    names.push('s3:PutObjectRetention')
  if (headers['x-amz-object-lock-legal-hold'] !== undefined) names.push('s3:PutObjectLegalHold')
  const storageClass = headers['x-amz-storage-class']
  if (storageClass !== undefined && !isHotClass(String(storageClass))) {
    const paid = classes.get(String(storageClass))?.action
    if (paid !== undefined) names.push(paid)
  }
  return names
}

import type { IncomingHttpHeaders } from 'node:http'
import type { Context } from '../../context.js'
import { S3Error } from '../../errors/s3-error.js'
import type { ReplyHeaders } from '../../response/reply.js'
import type { StoredObject } from '../../store/store.js'
import { element } from '../../xml.js'
import { headerText } from './headers.js'
import { type Placed, type Presence, presenceOf } from './presence.js'

/** What reports of objects need to know of the plugins. */
export type Reporting = Pick<Context, 'storageClasses' | 'outputMetadata'>

/** Headers by which GET and HEAD tell where an object's bytes are, and which job has taken them elsewhere. */
export function archiveHeaders(object: Placed, { storageClasses }: Reporting): ReplyHeaders {
  const presence = presenceOf(object, storageClasses)
  if (presence.state === 'hot') return {}
  return {
    'x-amz-storage-class': presence.storageClass,
    'x-amz-restore': restoreHeader(presence),
    'x-dealgate-job-id': object.archive?.jobId,
  }
}

/** One of the two forms that clients know, or nothing: https://docs.aws.amazon.com/AmazonS3/latest/API/API_HeadObject.html#API_HeadObject_ResponseSyntax */
function restoreHeader({ state, until }: Presence): string | undefined {
  if (state === 'restoring') return 'ongoing-request="true"'
  return until === undefined ? undefined : `ongoing-request="false", expiry-date="${new Date(until).toUTCString()}"`
}

/** `x-amz-meta-<name>` for what was stored with the object and for what plugins tell of it: their own names are theirs. */
export function metadataHeaders({ metadata, archive }: StoredObject, { outputMetadata }: Reporting): ReplyHeaders {
  const headers: ReplyHeaders = {}
  for (const [name, value] of Object.entries(metadata)) headers[`x-amz-meta-${name}`] = value
  for (const [name, value] of Object.entries(archive?.facts ?? {})) {
    if (!TOKEN.test(name) || (Object.hasOwn(metadata, name) && !outputMetadata(name))) continue
    headers[`x-amz-meta-${name}`] = headerValue(value)
  }
  return headers
}

/** RFC 9110 section 5.6.2, in the one case that S3 has for names. */
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/

/** Other text than ASCII goes as S3 sends it, by RFC 2047: https://docs.aws.amazon.com/AmazonS3/latest/userguide/UsingMetadata.html#UserMetadata */
function headerValue(text: string): string {
  return /^[\x20-\x7e]*$/.test(text) ? text : `=?UTF-8?B?${Buffer.from(text).toString('base64')}?=`
}

const OPTIONAL = 'x-amz-optional-object-attributes'

/** True for a listing that is to tell of restores. Throws InvalidArgument for attributes that listings do not have. */
export function asksForRestores(headers: IncomingHttpHeaders): boolean {
  const names = (headerText(headers, OPTIONAL) ?? '').split(',').map((name) => name.trim())
  const unknown = names.find((name) => name !== '' && name !== 'RestoreStatus')
  if (unknown !== undefined) {
    throw new S3Error('InvalidArgument', {
      message: 'Invalid attribute name specified: the one optional attribute of listings is RestoreStatus.',
      fields: { ArgumentName: OPTIONAL, ArgumentValue: unknown.slice(0, 100) },
    })
  }
  return names.includes('RestoreStatus')
}

/** `<RestoreStatus>` of a listed object; nothing for one that is neither restored nor being so. */
export function restoreStatus({ state, until }: Presence): string {
  if (state === 'restoring') return `<RestoreStatus>${element('IsRestoreInProgress', true)}</RestoreStatus>`
  if (until === undefined) return ''
  const expiry = element('RestoreExpiryDate', new Date(until).toISOString())
  return `<RestoreStatus>${element('IsRestoreInProgress', false)}${expiry}</RestoreStatus>`
}

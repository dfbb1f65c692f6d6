import type { IncomingHttpHeaders } from 'node:http'
import { S3Error } from '../../common/errors/s3-error.js'
import { element } from '../../common/xml/xml.js'
import type { StoredObject } from '../../objects/store.js'
import type { ReplyHeaders } from '../../response/reply.js'
import type { Registered } from '../../server/context.js'
import { type Placed, type Presence, presenceOf } from '../storage-class/presence.js'
import { headerText } from '../vocabulary/headers.js'

/** The registrations that object headers depend on. */
export type Reporting = Pick<Registered, 'storageClasses' | 'outputMetadata'>

/** Returns the headers of GET and HEAD that describe where an object's bytes are, and the job that archived them. */
export function archiveHeaders(object: Placed, { storageClasses }: Reporting): ReplyHeaders {
  const presence = presenceOf(object, storageClasses)
  if (presence.state === 'hot')
    return presence.storageClass === 'STANDARD' ? {} : { 'x-amz-storage-class': presence.storageClass }
  return {
    'x-amz-storage-class': presence.storageClass,
    'x-amz-restore': restoreHeader(presence),
    'x-dealgate-job-id': object.archive?.jobId,
  }
}

/**
 * Returns x-amz-restore in one of the two forms that clients know, or undefined:
 * https://docs.aws.amazon.com/AmazonS3/latest/API/API_HeadObject.html#API_HeadObject_ResponseSyntax
 */
function restoreHeader({ state, until }: Presence): string | undefined {
  if (state === 'restoring') return 'ongoing-request="true"'
  return until === undefined ? undefined : `ongoing-request="false", expiry-date="${new Date(until).toUTCString()}"`
}

/** `x-amz-meta-<name>` for the facts that plugins keep of the object alone. */
export function factHeaders(object: StoredObject, reporting: Reporting): ReplyHeaders {
  return metadataHeaders({ ...object, metadata: {} }, reporting)
}

/**
 * Returns `x-amz-meta-<name>` headers for stored metadata and for the facts of plugins, which take precedence for the
 * plugins' own names.
 */
export function metadataHeaders({ metadata, archive }: StoredObject, { outputMetadata }: Reporting): ReplyHeaders {
  const headers: ReplyHeaders = {}
  for (const [name, value] of Object.entries(metadata)) headers[`x-amz-meta-${name}`] = value
  for (const [name, value] of Object.entries(archive?.facts ?? {})) {
    if (!TOKEN.test(name) || (Object.hasOwn(metadata, name) && !outputMetadata(name))) continue
    headers[`x-amz-meta-${name}`] = headerValue(value)
  }
  return headers
}

/** Token of RFC 9110 section 5.6.2, in lower case, as S3 sends names. */
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/

/**
 * Encodes non-ASCII text by RFC 2047, as S3 does:
 * https://docs.aws.amazon.com/AmazonS3/latest/userguide/UsingMetadata.html#UserMetadata
 */
function headerValue(text: string): string {
  return /^[\x20-\x7e]*$/.test(text) ? text : `=?UTF-8?B?${Buffer.from(text).toString('base64')}?=`
}

const OPTIONAL = 'x-amz-optional-object-attributes'

/** Returns true if a listing request asks for RestoreStatus. Throws InvalidArgument for other attributes. */
export function asksForRestores(headers: IncomingHttpHeaders): boolean {
  const names = (headerText(headers, OPTIONAL) ?? '').split(',').map((name) => name.trim())
  const unknown = names.find((name) => name !== '' && name !== 'RestoreStatus')
  if (unknown !== undefined) {
    throw new S3Error('InvalidArgument', {
      message: 'Invalid attribute name specified: the only optional attribute of listings is RestoreStatus.',
      fields: { ArgumentName: OPTIONAL, ArgumentValue: unknown.slice(0, 100) },
    })
  }
  return names.includes('RestoreStatus')
}

/** Returns `<RestoreStatus>` of a listed object; '' if it is neither restored nor being restored. */
export function restoreStatus({ state, until }: Presence): string {
  if (state === 'restoring') return `<RestoreStatus>${element('IsRestoreInProgress', true)}</RestoreStatus>`
  if (until === undefined) return ''
  const expiry = element('RestoreExpiryDate', new Date(until).toISOString())
  return `<RestoreStatus>${element('IsRestoreInProgress', false)}${expiry}</RestoreStatus>`
}

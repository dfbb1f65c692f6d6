import type { IncomingHttpHeaders } from 'node:http'
import { S3Error } from '../../../common/errors/s3-error.js'
import { element } from '../../../common/xml.js'
import { headerText, STORAGE_CLASS } from '../../access/values/header-values.js'
import type { AdmittedWrite, ClassWrite, Presence, PresenceFacts } from '../../api/archive.js'
import type { Context, Registered, StorageClasses } from '../../api/context.js'
import type { ReplyHeaders } from '../../api/request.js'
import type { PutRequest, PutResult, StoredObject } from '../../api/store.js'
import { mailSafe } from '../../http/encoded-words.js'
import { utf8Bytes } from '../../http/header-text.js'
import { isHotClass } from '../../plugins/storage-class.js'

/** Returns the archive class that a write requests; undefined for a normal class. */
export function askedClass(headers: IncomingHttpHeaders): string | undefined {
  const asked = headerText(headers, STORAGE_CLASS)
  return asked === undefined || isHotClass(asked) ? undefined : asked
}

/** A write, before it is known what it becomes. */
type ClassRequest = Omit<ClassWrite, 'encrypted' | 'storedSize'> & Pick<PutRequest, 'encryption' | 'uploadId'>

/**
 * Asks the plugin of the class to admit a write, after checking the caller's right and before reading any bytes. Throws
 * InvalidStorageClass, AccessDenied, and errors of the plugin.
 * @param storageClass result of `askedClass`
 */
export async function admitClass(
  storageClass: string | undefined,
  { encryption, uploadId, ...write }: ClassRequest,
  context: Context,
): Promise<AdmittedWrite | undefined> {
  if (storageClass === undefined) return undefined
  context.checks.requireKey(write.bucket, write.key, 'write')
  const offered = context.plugins.storageClasses.get(storageClass)
  const { bucket, key, headers, kept, size } = write
  if (offered?.action !== undefined)
    await context.checks.requireAction(offered.action, { bucket, key, more: { headers } })
  // A plugin has no use for the keys of clients.
  const isKey = ([name]: [string, unknown]) => /^x-amz-.*-customer-key$/.test(name)
  const withoutKeys = Object.fromEntries(Object.entries(headers).filter((header) => !isKey(header)))
  if (offered?.admit) {
    const stored = kept
      ? { encrypted: kept.encrypted !== undefined, storedSize: kept.storedSize ?? kept.size }
      : await context.store.storedAs({ bucket, key, encryption, uploadId }, size)
    return offered.admit({ ...write, ...stored, headers: withoutKeys }, context)
  }
  throw new S3Error('InvalidStorageClass', {
    message: offered
      ? `Only lifecycle rules move objects to the storage class ${storageClass}.`
      : `The storage class ${storageClass} is not available: no plugin implements it.`,
    fields: { StorageClassRequested: storageClass },
  })
}

/**
 * Performs a write, and notifies the plugin that admitted it of the outcome. Returns the plugin's headers for the
 * answer.
 */
export async function writeAdmitted<Result extends PutResult | undefined>(
  context: Context,
  admitted: AdmittedWrite | undefined,
  { bucket, key }: Pick<PutRequest, 'bucket' | 'key'>,
  write: (archive: PutRequest['archive']) => Promise<Result>,
): Promise<{ readonly result: Result; readonly headers: ReplyHeaders }> {
  if (!admitted) return { result: await write(undefined), headers: {} }
  const notified = async (what: 'stored' | 'dropped', tell: () => Promise<ReplyHeaders | undefined>) => {
    try {
      return (await tell()) ?? {}
    } catch (err) {
      context.log.error(
        { err, bucket, key },
        `the plugin of a storage class failed to handle an object that was ${what}`,
      )
      return {}
    }
  }
  const drop = () => notified('dropped', () => admitted.dropped().then(() => undefined))
  let result: Result
  try {
    result = await write(admitted.archive)
  } catch (error) {
    await drop()
    throw error
  }
  if (!result) {
    await drop()
    return { result, headers: {} }
  }
  const { size, etag } = result
  return { result, headers: await notified('stored', () => admitted.stored({ bucket, key, size, etag })) }
}

/** The registrations that object headers depend on. */
export type Reporting = Pick<Registered, 'storageClasses' | 'outputMetadata'>

/** Returns the headers of GET and HEAD that describe where an object's bytes are, and the job that archived them. */
export function archiveHeaders(object: PresenceFacts, { storageClasses }: Reporting): ReplyHeaders {
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
  for (const [name, value] of Object.entries(metadata)) headers[`x-amz-meta-${name}`] = mailSafe(value)
  for (const [name, value] of Object.entries(archive?.facts ?? {})) {
    if (!TOKEN.test(name) || (Object.hasOwn(metadata, name) && !outputMetadata(name))) continue
    headers[`x-amz-meta-${name}`] = mailSafe(utf8Bytes(value))
  }
  return headers
}

/** Token of RFC 9110 section 5.6.2, in lower case, as S3 sends names. */
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/

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

/**
 * @param offered classes of the loaded plugins; the class of an object with a local copy is ignored if no plugin offers
 * it (any more)
 */
export function presenceOf({ archive, label = 'STANDARD', cold }: PresenceFacts, offered: StorageClasses): Presence {
  const { storageClass: asked, restore, failed } = archive ?? {}
  if (!cold && (failed || asked === undefined || !offered.has(asked))) return { state: 'hot', storageClass: label }
  const storageClass = asked === 'DEEP_ARCHIVE' ? asked : 'GLACIER'
  if (restore && 'ongoing' in restore) return { state: 'restoring', storageClass }
  if (cold) return { state: 'cold', storageClass }
  if (restore && restore.until !== null) return { state: 'restored', storageClass, until: restore.until }
  return { state: 'archived', storageClass: 'GLACIER_IR' }
}

/** Notifies the plugin of the storage class of the read, then returns the error of `notReadable`. */
export async function refuseCold(object: StoredObject, context: Context): Promise<S3Error> {
  const {
    log,
    plugins: { storageClasses },
  } = context
  const offered =
    object.archive?.storageClass === undefined ? undefined : storageClasses.get(object.archive.storageClass)
  let headers: ReplyHeaders = {}
  try {
    headers = (await offered?.missed?.(object, context)) ?? {}
  } catch (err) {
    log.warn({ err, bucket: object.bucket, key: object.key }, 'could not start restoring an archived object')
  }
  return notReadable(object, storageClasses, headers)
}

/**
 * Returns the error for reading archived bytes.
 * https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObject.html#API_GetObject_Errors
 */
export function notReadable(object: PresenceFacts, offered: StorageClasses, headers: ReplyHeaders = {}): S3Error {
  return new S3Error('InvalidObjectState', {
    message: "The operation is not valid for the object's storage class. Restore the object first.",
    fields: { StorageClass: presenceOf({ ...object, cold: true }, offered).storageClass },
    headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)])),
  })
}

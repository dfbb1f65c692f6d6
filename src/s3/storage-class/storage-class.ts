import type { IncomingHttpHeaders } from 'node:http'
import { S3Error } from '../../common/errors/s3-error.js'
import type { PutRequest, PutResult } from '../../objects/store.js'
import { type AdmittedWrite, type ClassWrite, isHotClass } from '../../plugins/forms/storage-class.js'
import type { ReplyHeaders } from '../../response/reply.js'
import type { Context } from '../../server/context.js'
import { headerText } from '../vocabulary/headers.js'

/** Returns the archive class that a write requests; undefined for a normal class. */
export function askedClass(headers: IncomingHttpHeaders): string | undefined {
  const asked = headerText(headers, 'x-amz-storage-class')
  return asked === undefined || isHotClass(asked) ? undefined : asked
}

/**
 * Asks the plugin of the class to admit a write, after checking the caller's right and before reading any bytes. Throws
 * InvalidStorageClass, AccessDenied, and errors of the plugin.
 * @param storageClass result of `askedClass`
 */
export async function admitClass(
  storageClass: string | undefined,
  write: ClassWrite,
  context: Context,
): Promise<AdmittedWrite | undefined> {
  if (storageClass === undefined) return undefined
  context.checks.requireKey(write.bucket, write.key, 'write')
  const offered = context.plugins.storageClasses.get(storageClass)
  const { bucket, key, headers } = write
  if (offered?.action !== undefined)
    await context.checks.requireAction(offered.action, { bucket, key, more: { headers } })
  if (offered?.admit) return offered.admit(write, context)
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
  const told = async (what: 'stored' | 'dropped', tell: () => Promise<ReplyHeaders | undefined>) => {
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
  const drop = () => told('dropped', () => admitted.dropped().then(() => undefined))
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
  return { result, headers: await told('stored', () => admitted.stored({ bucket, key, size, etag })) }
}

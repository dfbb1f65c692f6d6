import type { IncomingHttpHeaders } from 'node:http'
import type { Context } from '../../context.js'
import { S3Error } from '../../errors/s3-error.js'
import { type AdmittedWrite, type ClassWrite, isHotClass } from '../../registry/storage-class.js'
import type { ReplyHeaders } from '../../response/reply.js'
import type { PutRequest, PutResult } from '../../store/store.js'
import { headerText } from './headers.js'

/** The storage class that a write asks for; undefined where that is one as any other. */
export function askedClass(headers: IncomingHttpHeaders): string | undefined {
  const asked = headerText(headers, 'x-amz-storage-class')
  return asked === undefined || isHotClass(asked) ? undefined : asked
}

/**
 * Asks the plugin that offers the class whether it takes the object: before anything of its bytes is read, and of somebody who may write it. Throws InvalidStorageClass,
 * AccessDenied, and what the plugin throws.
 * @param storageClass as `askedClass` gives it
 */
export async function admitClass(
  storageClass: string | undefined,
  write: ClassWrite,
  context: Context,
): Promise<AdmittedWrite | undefined> {
  if (storageClass === undefined) return undefined
  context.requireKey(write.bucket, write.key, 'write')
  const offered = context.storageClasses.get(storageClass)
  if (offered?.action !== undefined) context.requireAction(offered.action)
  if (offered?.admit) return offered.admit(write, context)
  throw new S3Error('InvalidStorageClass', {
    message: offered
      ? `Objects come into the storage class ${storageClass} by lifecycle rules alone.`
      : `The storage class ${storageClass} is not offered: no plugin keeps objects in it.`,
    fields: { StorageClassRequested: storageClass },
  })
}

/** Does the write, and tells the plugin that has admitted it what became of it. The headers are for the answer. */
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
      context.log.error({ err, bucket, key }, `the plugin of a storage class failed over an object that was ${what}`)
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

import type { IncomingHttpHeaders } from 'node:http'
import { S3Error } from '../../errors/s3-error.js'
import { refuseDemands } from '../../registry/demands.js'

/** Classes whose objects are stored as any other; archive classes need a plugin that keeps their promise. */
const HOT_CLASSES = new Set(['STANDARD', 'STANDARD_IA', 'ONEZONE_IA', 'REDUCED_REDUNDANCY', 'INTELLIGENT_TIERING'])

/** Read by operations that write; see policy/apply-acl.ts. */
export const ACL = 'x-amz-acl'

/** Throws InvalidStorageClass for a class that makes a promise of its own. */
export function refuseStorageClass(headers: IncomingHttpHeaders): void {
  const storageClass = headers['x-amz-storage-class']
  if (storageClass === undefined || HOT_CLASSES.has(String(storageClass))) return
  throw new S3Error('InvalidStorageClass', {
    message: `The storage class ${String(storageClass)} is not offered: no plugin keeps objects in it.`,
  })
}

/**
 * For what stands in for headers, such as the fields of a form; a request's own have passed registry/demands.ts. Throws NotImplemented, InvalidStorageClass.
 * @param honoured those of the demands that the operation does what they ask for
 */
export function refuseHeaders(headers: IncomingHttpHeaders, honoured: readonly string[] = []): void {
  refuseDemands(headers, honoured)
  refuseStorageClass(headers)
}

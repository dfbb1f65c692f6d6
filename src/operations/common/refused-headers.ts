import type { IncomingHttpHeaders } from 'node:http'
import { S3Error } from '../../errors/s3-error.js'

/** Classes whose objects are stored as any other; archive classes need a plugin that keeps their promise. */
const HOT_CLASSES = new Set(['STANDARD', 'STANDARD_IA', 'ONEZONE_IA', 'REDUCED_REDUNDANCY', 'INTELLIGENT_TIERING'])

/** Read by operations that write; see policy/apply-acl.ts. */
export const ACL = 'x-amz-acl'

/** Headers that ask for something this gateway cannot do. Dropping one silently would break what the client relies on. */
const REFUSED =
  /^x-amz-(server-side-encryption|object-lock-|website-redirect-location|grant-|tagging|copy-source-server-side-encryption|write-offset-bytes|bucket-object-lock-enabled$)/

/**
 * Throws NotImplemented, naming the header, or InvalidStorageClass.
 * @param honoured those of them that the operation does what they ask for
 */
export function refuseHeaders(headers: IncomingHttpHeaders, honoured: readonly string[] = []): void {
  for (const [name, value] of Object.entries(headers)) {
    if (
      !REFUSED.test(name) ||
      honoured.includes(name) ||
      (name === 'x-amz-bucket-object-lock-enabled' && value === 'false')
    )
      continue
    throw new S3Error('NotImplemented', {
      message: `The header ${name} asks for functionality that is not implemented.`,
      fields: { Header: name },
    })
  }
  const acl = headers[ACL]
  if (!honoured.includes(ACL) && acl !== undefined && acl !== 'private' && acl !== 'bucket-owner-full-control') {
    throw new S3Error('NotImplemented', {
      message: 'Only the canned ACL "private" is implemented.',
      fields: { Header: 'x-amz-acl' },
    })
  }
  const storageClass = headers['x-amz-storage-class']
  if (storageClass !== undefined && !HOT_CLASSES.has(String(storageClass))) {
    throw new S3Error('InvalidStorageClass', {
      message: `The storage class ${String(storageClass)} is not offered: no plugin keeps objects in it.`,
    })
  }
}

import type { Tag } from '../../api/access.js'
import type { Context } from '../../api/context.js'
import type { EncryptionOrder } from '../../api/encryption.js'
import type { ReplyHeaders } from '../../api/request.js'
import type { PutResult } from '../../api/store.js'
import { expirationHeader } from '../lifecycle/headers.js'
import { versionHeaders } from '../versions/version.js'
import { customerOf, encryptionHeaders } from './encryption.js'

/** An object as a request has written it. */
interface Written {
  readonly bucket: string
  readonly key: string
  readonly tags?: readonly Tag[] | undefined
  /** The encryption that the request has ordered. */
  readonly encryption?: EncryptionOrder | undefined
}

/**
 * Returns the headers that every answer to a write of an object has, whichever operation wrote it: the id of the
 * version, the encryption, and when a lifecycle rule removes the object.
 */
export async function writtenHeaders(
  context: Context,
  { bucket, key, tags, encryption }: Written,
  result: PutResult,
): Promise<ReplyHeaders> {
  const { size, lastModified } = result
  return {
    ...versionHeaders(result),
    ...encryptionHeaders(result, customerOf(encryption)),
    'x-amz-expiration': await expirationHeader(context, bucket, { key, size, lastModified, ...(tags && { tags }) }),
  }
}

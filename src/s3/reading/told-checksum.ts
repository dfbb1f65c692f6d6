import type { StoredObject } from '../../objects/store.js'
import type { S3Request } from '../../request/s3-request.js'
import type { Context } from '../../server/context.js'
import type { ObjectChecksum } from '../../state/state.js'
import { headerText } from '../vocabulary/headers.js'
import type { LocatedPart } from './part-number.js'

/**
 * Returns the checksum of the bytes of an answer, for clients that send x-amz-checksum-mode: ENABLED. For a part it is
 * that of the part. For any other range there is none, because a client would compare the range with the checksum of
 * the whole object and fail.
 * https://docs.aws.amazon.com/AmazonS3/latest/userguide/checking-object-integrity-upload.html
 * @param ranged true if the answer is a range or a part of the object
 */
export async function toldChecksum(
  request: S3Request<'object'>,
  context: Context,
  object: StoredObject,
  part: LocatedPart | undefined,
  ranged: boolean,
): Promise<ObjectChecksum | undefined> {
  const { checksum } = object
  if (!checksum || headerText(request.headers, 'x-amz-checksum-mode')?.toUpperCase() !== 'ENABLED') return undefined
  if (!part) return ranged ? undefined : checksum
  // An object that was uploaded as a whole is its own only part.
  if (!object.partSizes) return checksum
  const parts = await context.store.partChecksums(object)
  const value = parts?.values[part.number - 1]
  return parts && value !== undefined ? { algorithm: parts.algorithm, value, type: checksum.type } : undefined
}

import type { Context } from '../../context.js'
import type { S3Request } from '../../request/s3-request.js'
import type { ObjectChecksum } from '../../state/state.js'
import type { StoredObject } from '../../store/store.js'
import { headerText } from './headers.js'
import type { LocatedPart } from './part-number.js'

/**
 * The checksum that goes with the bytes of an answer, for clients that ask with x-amz-checksum-mode: ENABLED. For a part it is the part's own; for any other
 * range there is none, for a client would hold the whole object's against it and fail.
 * https://docs.aws.amazon.com/AmazonS3/latest/userguide/checking-object-integrity-upload.html
 * @param ranged the answer holds less than the whole object, or just one part
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
  // An object that was uploaded whole is its own one part.
  if (!object.partSizes) return checksum
  const parts = await context.store.partChecksums(object)
  const value = parts?.values[part.number - 1]
  return parts && value !== undefined ? { algorithm: parts.algorithm, value, type: checksum.type } : undefined
}

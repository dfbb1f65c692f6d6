import {
  checksumAlgorithms,
  checksumHeader,
  combineChecksums,
  createChecksum,
  isCombinable,
} from '../../common/checksums.js'
import { S3Error } from '../../errors/s3-error.js'
import type { S3Request } from '../../request/s3-request.js'
import type { ObjectChecksum, PartRecord, UploadRecord } from '../../state/state.js'
import { headerText } from '../common/headers.js'

/**
 * The object's checksum from those of its parts: a checksum over checksums with the count (COMPOSITE), or that of all bytes (FULL_OBJECT).
 * https://docs.aws.amazon.com/AmazonS3/latest/userguide/checking-object-integrity-upload.html
 */
export function checksumOfParts(upload: UploadRecord, parts: readonly PartRecord[]): ObjectChecksum | undefined {
  if (!upload.checksum) return undefined
  const { algorithm, type } = upload.checksum
  const values = parts.map((part) => {
    if (part.checksum?.algorithm !== algorithm)
      throw new S3Error('InvalidPart', { fields: { PartNumber: part.partNumber } })
    return { value: part.checksum.value, size: part.size }
  })
  if (type === 'FULL_OBJECT') {
    if (!isCombinable(algorithm)) throw new Error(`${algorithm} has no FULL_OBJECT form in parts`)
    return { algorithm, type, value: combineChecksums(algorithm, values) }
  }
  const over = createChecksum(algorithm)
  for (const { value } of values) over.update(Buffer.from(value, 'base64'))
  return { algorithm, type, value: `${over.digest()}-${parts.length}` }
}

/** Throws BadDigest when the client expected another checksum of the whole, InvalidRequest when it expected another type. */
export function refuseWrongChecksum(request: S3Request<'object'>, checksum: ObjectChecksum | undefined): void {
  const type = headerText(request.headers, 'x-amz-checksum-type')?.toUpperCase()
  if (type !== undefined && checksum && type !== checksum.type) {
    throw new S3Error('InvalidRequest', { message: `The upload was created with the ${checksum.type} checksum type.` })
  }
  if (!checksum) return
  for (const algorithm of checksumAlgorithms) {
    const expected = headerText(request.headers, checksumHeader(algorithm))
    // The header of a request with a body may also be about the body itself, the XML; S3 defines it as the object's here.
    if (expected === undefined || algorithm !== checksum.algorithm || expected === checksum.value) continue
    if (checksum.type === 'COMPOSITE' && expected === checksum.value.replace(/-\d+$/, '')) continue
    throw new S3Error('BadDigest', {
      message: `The ${algorithm.toLowerCase()} you specified did not match the calculated checksum.`,
    })
  }
}

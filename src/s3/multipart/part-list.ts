import {
  type ChecksumAlgorithm,
  checksumAlgorithms,
  checksumHeader,
  combineChecksums,
  createChecksum,
  isCombinable,
  prepareChecksum,
} from '../../../common/checksums/checksums.js'
import { S3Error } from '../../../common/errors/s3-error.js'
import { unquoted } from '../../../common/etags.js'
import { childText, parseXml, requireChildren, type XmlNode } from '../../../common/xml.js'
import type { Context } from '../../api/context.js'
import type { ObjectChecksum } from '../../api/object-checksum.js'
import type { S3Request } from '../../api/request.js'
import type { PartRecord, UploadRecord } from '../../api/uploads.js'
import { headerText } from '../object/attributes.js'

/** A part in the client's list. */
export interface PartWanted {
  readonly partNumber: number
  readonly etag: string
  /** Checksums by algorithm, base64. */
  readonly checksums: Readonly<Record<string, string>>
}

/** A list of 10,000 parts with checksums has about 2.5 MB. */
const MAX_LIST_BYTES = 8 * 1024 * 1024

/** Reads the body of CompleteMultipartUpload. Throws MalformedXML, InvalidPartOrder, InvalidArgument. */
export async function readPartList(request: S3Request<'object'>, context: Context): Promise<PartWanted[]> {
  const { bytes } = await request.body.collect(MAX_LIST_BYTES)
  if (bytes.length === 0) throw new S3Error('InvalidRequest', { message: 'You must specify at least one part' })
  const root = await parseXml(bytes, 'CompleteMultipartUpload')
  // Ignoring an unknown element could leave a part out of the object, and lose it.
  requireChildren(root, 'CompleteMultipartUpload', { many: ['Part'] })
  const parts = (root.children.get('Part') ?? []).map((part): PartWanted => {
    const number = childText(part, 'PartNumber')
    const etag = childText(part, 'ETag')
    if (number === undefined || etag === undefined || !/^\d{1,9}$/.test(number.trim()))
      throw new S3Error('MalformedXML')
    const partNumber = Number(number)
    if (partNumber < 1 || partNumber > context.limits.maxParts) {
      throw new S3Error('InvalidArgument', {
        message: `PartNumber must be from 1 to ${context.limits.maxParts}.`,
        fields: { ArgumentName: 'PartNumber', ArgumentValue: number },
      })
    }
    refuseUnknownChecksums(part)
    const checksums = checksumAlgorithms.flatMap((name) => {
      const value = childText(part, `Checksum${name}`)
      return value ? [[name, value] as const] : []
    })
    return { partNumber, etag: unquoted(etag), checksums: Object.fromEntries(checksums) }
  })
  if (parts.length === 0) throw new S3Error('MalformedXML', { message: 'You must specify at least one part' })
  for (let i = 1; i < parts.length; i++) {
    if ((parts[i - 1] as PartWanted).partNumber >= (parts[i] as PartWanted).partNumber)
      throw new S3Error('InvalidPartOrder', { fields: { UploadId: request.query.get('uploadId') ?? '' } })
  }
  return parts
}

/** Refuses checksums of unsupported algorithms, which cannot be compared. */
function refuseUnknownChecksums(part: XmlNode): void {
  for (const name of part.children.keys()) {
    if (!name.startsWith('Checksum') || checksumAlgorithms.some((algorithm) => name === `Checksum${algorithm}`))
      continue
    throw new S3Error('NotImplemented', {
      message: `${name} cannot be verified; the supported algorithms are ${checksumAlgorithms.join(', ')}.`,
    })
  }
}

/**
 * Computes the object's checksum from those of its parts: a checksum of the checksums with the number of parts
 * (COMPOSITE), or that of all bytes (FULL_OBJECT).
 * https://docs.aws.amazon.com/AmazonS3/latest/userguide/checking-object-integrity-upload.html
 */
export async function checksumOfParts(
  upload: UploadRecord,
  parts: readonly PartRecord[],
): Promise<ObjectChecksum | undefined> {
  if (!upload.checksum) return undefined
  const { algorithm, type } = upload.checksum
  const values = parts.map((part) => {
    if (part.checksum?.algorithm !== algorithm)
      throw new S3Error('InvalidPart', { fields: { UploadId: upload.uploadId, PartNumber: part.partNumber } })
    return { value: part.checksum.value, size: part.size }
  })
  if (type === 'FULL_OBJECT') {
    if (!isCombinable(algorithm)) throw new Error(`${algorithm} has no FULL_OBJECT form in parts`)
    return { algorithm, type, value: combineChecksums(algorithm, values) }
  }
  await prepareChecksum(algorithm)
  const over = createChecksum(algorithm)
  for (const { value } of values) over.update(Buffer.from(value, 'base64'))
  return { algorithm, type, value: `${over.digest()}-${parts.length}` }
}

/** The checksum of all bytes for an upload that was begun without one; undefined if a part has none to combine. */
export function defaultChecksumOfParts(parts: readonly PartRecord[]): ObjectChecksum | undefined {
  const values: { readonly value: string; readonly size: number }[] = []
  for (const { crc64, size } of parts) if (crc64 !== undefined) values.push({ value: crc64, size })
  if (values.length < parts.length) return undefined
  return { algorithm: 'CRC64NVME', type: 'FULL_OBJECT', value: combineChecksums('CRC64NVME', values) }
}

/** The checksum of the whole object that CompleteMultipartUpload states. */
export interface ExpectedChecksum {
  readonly algorithm: ChecksumAlgorithm
  /** Base64. */
  readonly value: string
}

/**
 * Compares the expected checksum with that of the parts. If the upload was created without a checksum, returns the
 * expected one, to be compared with the bytes themselves: a CRC64NVME, or one that `x-amz-checksum-type: FULL_OBJECT`
 * declares to be that of the object.
 * @throws S3Error BadDigest for another checksum, InvalidRequest for another type or algorithm
 */
export function checkExpectedChecksum(
  request: S3Request<'object'>,
  checksum: ObjectChecksum | undefined,
): ExpectedChecksum | undefined {
  const expected = readExpected(request)
  const type = headerText(request.headers, 'x-amz-checksum-type')?.toUpperCase()
  if (type !== undefined && type !== (checksum?.type ?? 'FULL_OBJECT')) {
    throw new S3Error('InvalidRequest', {
      message: `The upload was created with the ${checksum?.type ?? 'FULL_OBJECT'} checksum type.`,
    })
  }
  if (!expected) return undefined
  if (!checksum) {
    // Without the type, S3 compares only CRC64NVME, which it always computes, and ignores others: clients send the
    // checksum of the request body here.
    if (type === undefined && expected.algorithm !== 'CRC64NVME') return undefined
    if (isCombinable(expected.algorithm)) return expected
    throw mismatch(expected.algorithm, undefined)
  }
  if (expected.algorithm !== checksum.algorithm) throw mismatch(expected.algorithm, checksum.algorithm)
  const plain = checksum.type === 'COMPOSITE' ? checksum.value.replace(/-\d+$/, '') : checksum.value
  if (expected.value !== checksum.value && expected.value !== plain) throw wrongChecksum(expected.algorithm)
  return undefined
}

/** Headers that describe checksums. All others hold one, including algorithms that S3 may add. */
const NO_VALUES = new Set(['x-amz-checksum-algorithm', 'x-amz-checksum-type'])

function readExpected(request: S3Request<'object'>): ExpectedChecksum | undefined {
  const known = new Set(checksumAlgorithms.map(checksumHeader))
  for (const name in request.headers) {
    if (!name.startsWith('x-amz-checksum-') || known.has(name) || NO_VALUES.has(name)) continue
    throw new S3Error('NotImplemented', {
      message: `${name} cannot be verified; the supported algorithms are ${checksumAlgorithms.join(', ')}.`,
      fields: { Header: name },
    })
  }
  const [expected, other] = checksumAlgorithms.flatMap((algorithm): ExpectedChecksum[] => {
    const value = headerText(request.headers, checksumHeader(algorithm))
    return value === undefined ? [] : [{ algorithm, value }]
  })
  if (other) throw new S3Error('InvalidRequest', { message: 'Expecting a single x-amz-checksum- header.' })
  return expected
}

/** With `null` for none, as S3 writes it. */
export function mismatch(actual: ChecksumAlgorithm | undefined, expected: ChecksumAlgorithm | undefined): S3Error {
  const [wanted, got] = [expected, actual].map((algorithm) => algorithm?.toLowerCase() ?? 'null')
  return new S3Error('InvalidRequest', {
    message: `Checksum Type mismatch occurred, expected checksum Type: ${wanted}, actual checksum Type: ${got}`,
  })
}

export function wrongChecksum(algorithm: ChecksumAlgorithm): S3Error {
  return new S3Error('BadDigest', {
    message: `The ${algorithm.toLowerCase()} you specified did not match the calculated checksum.`,
  })
}

import { checksumAlgorithms } from '../../common/checksums/checksums.js'
import { S3Error } from '../../common/errors/s3-error.js'
import { unquoted } from '../../common/etags.js'
import { requireChildren } from '../../common/xml/strict-xml.js'
import { childText, parseXml, type XmlNode } from '../../common/xml/xml.js'
import type { S3Request } from '../../request/s3-request.js'
import type { Context } from '../../server/context.js'

/** A part in the client's list. */
export interface PartWanted {
  readonly partNumber: number
  readonly etag: string
  /** By algorithm, base64. */
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

import { S3Error } from '../../common/errors/s3-error.js'
import { quoted } from '../../common/etags.js'
import { document, element } from '../../common/xml/xml.js'
import type { Source } from '../../objects/store.js'
import { defineOperation } from '../../plugins/forms/operation.js'
import type { S3Request } from '../../request/s3-request.js'
import { late } from '../../response/reply.js'
import type { Context } from '../../server/context.js'
import type { UploadRecord } from '../../state/state.js'
import { type CopySource, checkSource, copiedBytes, readCopySource, whileSourceChanges } from '../copy/copy-source.js'
import { notReadable } from '../storage-class/presence.js'
import { headerText } from '../vocabulary/headers.js'
import { stagePart } from './stage-part.js'
import { readPartNumber, requireUploadToFill } from './upload.js'

export const uploadPartCopy = defineOperation({
  name: 'UploadPartCopy',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_UploadPartCopy.html',
  partly: 'Encryption with customer keys is NotImplemented.',
  access: 'signed',
  action: 's3:PutObject',
  keeps: 'uploads',
  needs: { key: 'write' },
  on: { method: 'PUT', resource: 'object', query: ['partNumber', 'uploadId'], header: 'x-amz-copy-source' },
  async run(request, context) {
    const partNumber = readPartNumber(request, context)
    const upload = await requireUploadToFill(request, context)
    const from = readCopySource(request, context)
    await context.door.decide({ action: 's3:GetObject', ...from })
    const source = await openSource(request, context, from)
    const copied = (bytes: Source) => copy(context, upload, partNumber, bytes)
    const again = async () => copied(await openSource(request, context, from))
    return late(whileSourceChanges(() => copied(source), again))
  },
})

async function openSource(request: S3Request<'object'>, context: Context, from: CopySource): Promise<Source> {
  const source = await context.store.head(from.bucket, from.key)
  if (source.cold) throw notReadable(source, context.plugins.storageClasses)
  checkSource(request, source)
  return copiedBytes(context, source, copiedRange(request, source.size))
}

async function copy(context: Context, upload: UploadRecord, partNumber: number, source: Source): Promise<string> {
  const part = await stagePart(context, upload, partNumber, source)
  return document(
    'CopyPartResult',
    [
      element('LastModified', new Date(part.lastModified).toISOString()),
      element('ETag', quoted(part.etag)),
      part.checksum ? element(`Checksum${part.checksum.algorithm}`, part.checksum.value) : '',
    ].join(''),
  )
}

/** Reads `bytes=first-last`; both are required and must lie inside the object. Throws InvalidArgument, InvalidRange. */
function copiedRange(request: S3Request<'object'>, size: number): { first: number; last: number } | undefined {
  const header = headerText(request.headers, 'x-amz-copy-source-range')
  if (header === undefined) return undefined
  const found = /^bytes=(\d{1,16})-(\d{1,16})$/.exec(header.trim())
  const first = Number(found?.[1])
  const last = Number(found?.[2])
  if (!found || first > last) {
    throw new S3Error('InvalidArgument', {
      message:
        'The x-amz-copy-source-range value must be of the form bytes=first-last where first and last are the zero-based offsets of the first and last bytes to copy',
      fields: { ArgumentName: 'x-amz-copy-source-range', ArgumentValue: header },
    })
  }
  if (last >= size)
    throw new S3Error('InvalidRange', {
      message: `Range specified is not valid for source object of size: ${size}`,
      fields: { ActualObjectSize: size },
    })
  return { first, last }
}

import { quoted } from '../../common/etags.js'
import { document, element } from '../../common/xml/xml.js'
import { defineOperation } from '../../plugins/forms/operation.js'
import { pageSize, wholeNumber } from '../../request/numbers.js'
import { xml } from '../../response/reply.js'
import type { PartRecord } from '../../state/state.js'
import { initiatorElement, ownerElement } from '../vocabulary/owner.js'
import { requireUpload } from './upload.js'

export const listParts = defineOperation({
  name: 'ListParts',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListParts.html',
  access: 'signed',
  action: 's3:ListMultipartUploadParts',
  on: {
    method: 'GET',
    resource: 'object',
    query: ['uploadId'],
    params: ['max-parts', 'part-number-marker', 'encoding-type'],
  },
  async run(request, context) {
    const maxParts = pageSize('max-parts', request.query.get('max-parts'))
    const marker = wholeNumber('part-number-marker', request.query.get('part-number-marker'), {
      fallback: 0,
      min: 0,
      max: 2_147_483_647,
    })
    const upload = await requireUpload(request, context, 's3:ListMultipartUploadParts')
    const found =
      maxParts === 0 ? [] : await context.state.uploads.listParts(upload.uploadId, marker, maxParts + 1, context)
    const parts = found.slice(0, maxParts)
    const truncated = found.length > maxParts
    return xml(
      document(
        'ListPartsResult',
        [
          element('Bucket', upload.bucket),
          element('Key', upload.key),
          element('UploadId', upload.uploadId),
          initiatorElement(upload),
          ownerElement(context),
          element('StorageClass', upload.storageClass ?? upload.label ?? 'STANDARD'),
          element('PartNumberMarker', marker),
          element('NextPartNumberMarker', truncated ? parts.at(-1)?.partNumber : undefined),
          element('MaxParts', maxParts),
          element('IsTruncated', truncated),
          element('ChecksumAlgorithm', upload.checksum?.algorithm),
          element('ChecksumType', upload.checksum?.type),
          parts.map(partElement).join(''),
        ].join(''),
      ),
    )
  },
})

function partElement(part: PartRecord): string {
  return [
    '<Part>',
    element('PartNumber', part.partNumber),
    element('LastModified', new Date(part.lastModified).toISOString()),
    element('ETag', quoted(part.etag)),
    element('Size', part.size),
    part.checksum ? element(`Checksum${part.checksum.algorithm}`, part.checksum.value) : '',
    '</Part>',
  ].join('')
}

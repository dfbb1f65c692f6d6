import { compareUtf8 } from '../../../common/byte-order.js'
import { quoted } from '../../../common/etags.js'
import { pageSize, wholeNumber } from '../../../common/query.js'
import { document, element } from '../../../common/xml.js'
import type { PartRecord, UploadRecord } from '../../api/uploads.js'
import { xml } from '../../http/reply.js'
import { defineOperation } from '../../plugins/define-plugin.js'
import { isOfBucket } from '../../state/uploads/upload-sweep.js'
import { type ListRequest, readListRequest } from '../bucket/list-objects.js'
import { requireBucket, uploadOwners } from '../bucket/owner.js'
import { abortHeaders } from '../lifecycle/headers.js'
import { CUSTOMER_HEADERS, customerKey } from '../object/encryption.js'
import { accessKeyId, managesUploads, requireUpload } from './upload.js'

export const listParts = defineOperation({
  name: 'ListParts',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListParts.html',
  access: 'signed',
  action: 's3:ListMultipartUploadParts',
  needs: { key: 'write' },
  on: {
    method: 'GET',
    resource: 'object',
    query: ['uploadId'],
    params: ['max-parts', 'part-number-marker', 'encoding-type'],
    headers: CUSTOMER_HEADERS,
  },
  async run(request, context) {
    const customer = customerKey(request, context)
    const maxParts = pageSize('max-parts', request.query.get('max-parts'))
    const marker = wholeNumber('part-number-marker', request.query.get('part-number-marker'), {
      fallback: 0,
      min: 0,
      max: 2_147_483_647,
    })
    const upload = await requireUpload(request, context, 's3:ListMultipartUploadParts')
    if (customer) await context.store.requireUploadKey(upload, customer)
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
          await uploadOwners(upload, context),
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
      await abortHeaders(context, upload),
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

type Entry = { kind: 'upload'; upload: UploadRecord } | { kind: 'prefix'; prefix: string }

export const listMultipartUploads = defineOperation({
  name: 'ListMultipartUploads',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListMultipartUploads.html',
  access: 'signed',
  action: 's3:ListBucketMultipartUploads',
  on: {
    method: 'GET',
    resource: 'bucket',
    query: ['uploads'],
    params: ['prefix', 'delimiter', 'key-marker', 'upload-id-marker', 'max-uploads', 'encoding-type'],
  },
  async run(request, context) {
    const list = readListRequest(request.query, 'max-uploads')
    const keyMarker = request.query.get('key-marker') ?? ''
    // S3 ignores upload-id-marker without key-marker.
    const idMarker = keyMarker === '' ? '' : (request.query.get('upload-id-marker') ?? '')
    await requireBucket(context, request.bucket)
    const creationTime = await context.creationTimes.now(request.bucket)
    const all = await managesUploads(context, 's3:ListBucketMultipartUploads', request.bucket)
    const shown = (await context.state.uploads.list(request.bucket)).filter(
      (upload) => (all || upload.accessKeyId === accessKeyId(context)) && isOfBucket(upload, creationTime),
    )
    const following = grouped(shown.sort(order), list).filter((entry) => comesAfter(entry, keyMarker, idMarker))
    const page = following.slice(0, list.maxKeys)
    const truncated = list.maxKeys > 0 && following.length > page.length
    const last = page.at(-1)
    const uploads = page.flatMap((entry) => (entry.kind === 'upload' ? [entry.upload] : []))
    const elements = await Promise.all(
      uploads.map(async (upload) => uploadElement(upload, list, await uploadOwners(upload, context))),
    )
    return xml(
      document(
        'ListMultipartUploadsResult',
        [
          element('Bucket', request.bucket),
          element('KeyMarker', list.name(keyMarker)),
          element('UploadIdMarker', idMarker),
          truncated && last
            ? element('NextKeyMarker', list.name(nameOf(last))) +
              element('NextUploadIdMarker', last.kind === 'upload' ? last.upload.uploadId : '')
            : '',
          element('Prefix', list.name(list.prefix)),
          list.delimiter === '' ? '' : element('Delimiter', list.name(list.delimiter)),
          element('EncodingType', list.encodingType),
          element('MaxUploads', list.maxKeys),
          element('IsTruncated', truncated),
          elements.join(''),
          page
            .map((entry) =>
              entry.kind === 'prefix'
                ? `<CommonPrefixes>${element('Prefix', list.name(entry.prefix))}</CommonPrefixes>`
                : '',
            )
            .join(''),
        ].join(''),
      ),
    )
  },
})

/**
 * Orders by key, then by id: within a key, S3 continues with ids "lexicographically greater than the specified
 * upload-id-marker".
 */
function order(a: UploadRecord, b: UploadRecord): number {
  return compareUtf8(a.key, b.key) || compareUtf8(a.uploadId, b.uploadId)
}

function grouped(uploads: readonly UploadRecord[], list: ListRequest): Entry[] {
  const entries: Entry[] = []
  let group: string | undefined
  for (const upload of uploads) {
    if (!upload.key.startsWith(list.prefix)) continue
    const at = list.delimiter === '' ? -1 : upload.key.indexOf(list.delimiter, list.prefix.length)
    if (at < 0) entries.push({ kind: 'upload', upload })
    else {
      const prefix = upload.key.slice(0, at + list.delimiter.length)
      if (prefix !== group) entries.push({ kind: 'prefix', prefix })
      group = prefix
    }
  }
  return entries
}

function nameOf(entry: Entry): string {
  return entry.kind === 'upload' ? entry.upload.key : entry.prefix
}

function comesAfter(entry: Entry, keyMarker: string, idMarker: string): boolean {
  if (keyMarker === '') return true
  const byKey = compareUtf8(nameOf(entry), keyMarker)
  if (byKey !== 0 || idMarker === '' || entry.kind === 'prefix') return byKey > 0
  return compareUtf8(entry.upload.uploadId, idMarker) > 0
}

function uploadElement(upload: UploadRecord, list: ListRequest, owners: string): string {
  return [
    '<Upload>',
    element('Key', list.name(upload.key)),
    element('UploadId', upload.uploadId),
    owners,
    element('StorageClass', upload.storageClass ?? upload.label ?? 'STANDARD'),
    element('Initiated', new Date(upload.initiated).toISOString()),
    element('ChecksumAlgorithm', upload.checksum?.algorithm),
    element('ChecksumType', upload.checksum?.type),
    '</Upload>',
  ].join('')
}

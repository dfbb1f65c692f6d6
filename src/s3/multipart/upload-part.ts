import { type ChecksumAlgorithm, checksumHeader } from '../../../common/checksums/checksums.js'
import { S3Error } from '../../../common/errors/s3-error.js'
import { quoted } from '../../../common/etags.js'
import { document, element } from '../../../common/xml.js'
import type { Context } from '../../api/context.js'
import type { ServerKey } from '../../api/encryption.js'
import type { ReplyHeaders, S3Request } from '../../api/request.js'
import type { Source } from '../../api/store.js'
import type { PartRecord, UploadRecord } from '../../api/uploads.js'
import { empty, late } from '../../http/reply.js'
import { defaultChecksum } from '../../objects/default-checksum.js'
import { payloadLength } from '../../objects/encryption/payload.js'
import { holdsNoBytes } from '../../objects/folder-objects.js'
import { defineOperation } from '../../plugins/define-plugin.js'
import { headerText } from '../object/attributes.js'
import {
  type CopySource,
  checkSource,
  copiedBytes,
  headSource,
  readCopySource,
  readingOf,
  sourceVersionHeaders,
  whileSourceChanges,
} from '../object/copy-source.js'
import {
  customerKey,
  ENCRYPTION_HEADERS,
  encryptionHeaders,
  inherited,
  keyForUpload,
  SOURCE_CUSTOMER_HEADERS,
} from '../object/encryption.js'
import { notReadable } from '../object/storage-class.js'
import { mismatch } from './part-list.js'
import { readPartNumber, requireUploadToFill } from './upload.js'

export const uploadPart = defineOperation({
  name: 'UploadPart',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_UploadPart.html',
  access: 'signed',
  action: 's3:PutObject',
  keeps: 'uploads',
  needs: { key: 'write' },
  on: { method: 'PUT', resource: 'object', query: ['partNumber', 'uploadId'], headers: ENCRYPTION_HEADERS },
  async run(request, context) {
    const partNumber = readPartNumber(request, context)
    if (request.headers['content-length'] === undefined && request.headers['transfer-encoding'] === undefined)
      throw new S3Error('MissingContentLength')
    const upload = await requireUploadToFill(request, context)
    const declared = request.body.declaredChecksum
    // Complete demands the checksum of every part again for a composite checksum. What S3 computes for a part without
    // one is that of another type.
    const needed = upload.checksum?.type === 'COMPOSITE' || declared !== undefined
    if (upload.checksum && needed && declared !== upload.checksum.algorithm)
      throw mismatch(declared, upload.checksum.algorithm)
    const customer = keyForUpload(request, context, upload.encryption)
    await context.store.requireUploadKey(upload, customer)
    const part = await stagePart(context, upload, partNumber, request.body, { declared })
    return empty({
      etag: quoted(part.etag),
      ...(part.checksum && { [checksumHeader(part.checksum.algorithm)]: part.checksum.value }),
      ...(part.crc64 !== undefined && { [checksumHeader('CRC64NVME')]: part.crc64 }),
      ...encryptionHeaders({ encrypted: upload.encryption }, customer),
    })
  },
})

interface Staging {
  /** The checksum that the client declares. */
  readonly declared?: ChecksumAlgorithm | undefined
  /** See PartRecord. */
  readonly copied?: ServerKey | undefined
}

/**
 * Writes the verified bytes of a part to disk, durably, before the answer, and only then replaces an earlier part of
 * that number.
 */
async function stagePart(
  context: Context,
  upload: UploadRecord,
  partNumber: number,
  source: Source,
  { declared, copied }: Staging,
): Promise<PartRecord> {
  const { maxPutBytes } = context.limits
  if ((source.length ?? 0) > maxPutBytes) throw tooLarge(maxPutBytes)
  await requireHoldable(context, upload, source)
  const bytes = await context.store.stagedSource(upload, source)
  const most = bytes.length ?? (bytes === source ? maxPutBytes : payloadLength(maxPutBytes))
  const writer = await context.state.uploads.openPart(upload.uploadId, partNumber, bytes.length, context)
  try {
    let written = 0
    const facts = await bytes.stream(
      (chunk) => {
        written += chunk.length
        if (written > most) throw tooLarge(maxPutBytes)
        return writer.write(chunk)
      },
      { md5: true, checksum: upload.checksum?.algorithm ?? defaultChecksum(upload.encryption) },
    )
    if (!facts.md5) throw new Error('the source gave no MD5')
    const part: PartRecord = {
      partNumber,
      size: facts.size,
      etag: facts.md5.toString('hex'),
      lastModified: Date.now(),
      // A checksum that only the server wants is kept apart: it says nothing of what the client has compared.
      ...((upload.checksum?.algorithm ?? declared) ? { checksum: facts.checksum } : { crc64: facts.checksum?.value }),
      file: await writer.finish(),
      ...(bytes !== source && { staged: written }),
      ...(copied && { copied }),
    }
    await context.state.uploads.putPart(upload.uploadId, part, context)
    return part
  } catch (error) {
    await writer.discard()
    throw error
  }
}

/** Throws InvalidArgument for bytes that the gateway would refuse at the end, because of the key. */
async function requireHoldable({ gateway }: Context, { key }: UploadRecord, { length }: Source): Promise<void> {
  if ((length ?? 0) === 0 || !key.endsWith('/') || (await gateway.features()).anyKey) return
  throw holdsNoBytes()
}

function tooLarge(maxPutBytes: number): S3Error {
  return new S3Error('EntityTooLarge', { fields: { MaxSizeAllowed: maxPutBytes } })
}

export const uploadPartCopy = defineOperation({
  name: 'UploadPartCopy',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_UploadPartCopy.html',
  access: 'signed',
  action: 's3:PutObject',
  keeps: 'uploads',
  needs: { key: 'write' },
  on: {
    method: 'PUT',
    resource: 'object',
    query: ['partNumber', 'uploadId'],
    header: 'x-amz-copy-source',
    headers: [...ENCRYPTION_HEADERS, ...SOURCE_CUSTOMER_HEADERS],
  },
  async run(request, context) {
    const partNumber = readPartNumber(request, context)
    const upload = await requireUploadToFill(request, context)
    const customer = keyForUpload(request, context, upload.encryption)
    await context.store.requireUploadKey(upload, customer)
    const from = await readCopySource(request, context)
    await context.authorizer.decide(readingOf(from))
    const source = await openSource(request, context, from)
    const copied = async (bytes: CopiedSource) => ({
      document: await copy(context, upload, partNumber, bytes),
      headers: { ...encryptionHeaders({ encrypted: upload.encryption }, customer), ...bytes.version },
    })
    const again = async () => copied(await openSource(request, context, from))
    return late(whileSourceChanges(() => copied(source), again))
  },
})

interface CopiedSource {
  readonly bytes: Source
  /** See PartRecord. */
  readonly copied: ServerKey | undefined
  /** Tells which version was copied. */
  readonly version: ReplyHeaders
}

async function openSource(request: S3Request<'object'>, context: Context, from: CopySource): Promise<CopiedSource> {
  const source = await headSource(context, from)
  if (source.cold) throw notReadable(source, context.plugins.storageClasses)
  const customer = customerKey(request, context, SOURCE_CUSTOMER_HEADERS)
  await context.store.requireCustomerKey(source, customer)
  checkSource(request, source)
  const bytes = copiedBytes(context, source, { range: copiedRange(request, source.size), customer })
  return { bytes, copied: inherited(source), version: sourceVersionHeaders(source) }
}

async function copy(
  context: Context,
  upload: UploadRecord,
  partNumber: number,
  { bytes, copied }: CopiedSource,
): Promise<string> {
  const part = await stagePart(context, upload, partNumber, bytes, { copied: upload.encryption ? undefined : copied })
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

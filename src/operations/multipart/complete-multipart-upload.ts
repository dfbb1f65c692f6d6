import { createHash } from 'node:crypto'
import type { Context } from '../../context.js'
import { S3Error } from '../../errors/s3-error.js'
import { defineOperation } from '../../registry/operation.js'
import type { S3Request } from '../../request/s3-request.js'
import { late } from '../../response/reply.js'
import type { CompletedUpload, PartRecord, UploadRecord } from '../../state/state.js'
import { digesting } from '../../store/digesting.js'
import type { Source } from '../../store/store.js'
import { document, element } from '../../xml.js'
import { causeOf } from '../common/cause.js'
import { quoted } from '../common/etags.js'
import { headerText } from '../common/headers.js'
import { writePrecondition } from '../common/write-conditions.js'
import { checkExpectedChecksum, checksumOfParts, type ExpectedChecksum, wrongChecksum } from './checksum-of-parts.js'
import { type PartWanted, readPartList } from './part-list.js'
import { allParts, isOwn } from './upload.js'

export const completeMultipartUpload = defineOperation({
  name: 'CompleteMultipartUpload',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_CompleteMultipartUpload.html',
  partly: 'Encryption with customer keys is NotImplemented.',
  on: { method: 'POST', resource: 'object', query: ['uploadId'] },
  async run(request, context) {
    const wanted = await readPartList(request, context)
    context.requireKey(request.bucket, request.key, 'write')
    return late(complete(request, context, wanted))
  },
})

/** One at a time per upload: clients repeat the call after a time-out, and the second must get the first's answer. */
function complete(request: S3Request<'object'>, context: Context, wanted: readonly PartWanted[]): Promise<string> {
  const uploadId = request.query.get('uploadId') ?? ''
  return context.state.locks.withName(`complete/${uploadId}`, async () => {
    const fingerprint = createHash('sha256').update(JSON.stringify(wanted)).digest('base64url')
    const done = await context.state.uploads.completed(uploadId)
    if (done && isOwn(done, request, context) && done.request === fingerprint) return answer(request, done)
    const upload = await context.state.uploads.get(uploadId)
    if (!upload || !isOwn(upload, request, context)) throw new S3Error('NoSuchUpload')
    return answer(request, await assemble(request, context, upload, wanted, fingerprint))
  })
}

async function assemble(
  request: S3Request<'object'>,
  context: Context,
  upload: UploadRecord,
  wanted: readonly PartWanted[],
  fingerprint: string,
): Promise<CompletedUpload> {
  const parts = matchParts(upload, wanted, await allParts(context, upload.uploadId), context.limits.minPartBytes)
  const size = parts.reduce((sum, part) => sum + part.size, 0)
  refuseWrongSize(request, size, context.limits.maxObjectBytes)
  const checksum = checksumOfParts(upload, parts)
  const expected = checkExpectedChecksum(request, checksum)
  const etag = etagOfParts(parts)
  const result = await context.store.put({
    bucket: upload.bucket,
    key: upload.key,
    source: staged(context, upload.uploadId, parts, size, expected),
    attributes: { contentType: upload.contentType, headers: upload.headers, metadata: upload.metadata },
    etag,
    checksum,
    partSizes: runLengths(parts),
    partChecksums: upload.checksum && {
      algorithm: upload.checksum.algorithm,
      values: parts.map((part) => part.checksum?.value ?? ''),
    },
    tags: upload.tags,
    event: causeOf('ObjectCreated:CompleteMultipartUpload', request, context),
    precondition: writePrecondition(request.headers),
    maxBytes: context.limits.maxObjectBytes,
  })
  const done: CompletedUpload = {
    uploadId: upload.uploadId,
    bucket: upload.bucket,
    key: upload.key,
    accessKeyId: upload.accessKeyId,
    etag,
    checksum: result.checksum,
    request: fingerprint,
  }
  await context.state.uploads.finish(done)
  return done
}

function answer(request: S3Request<'object'>, done: CompletedUpload): string {
  return document(
    'CompleteMultipartUploadResult',
    [
      element('Location', `${request.secure ? 'https' : 'http'}://${request.host || 'localhost'}${request.rawPath}`),
      element('Bucket', done.bucket),
      element('Key', done.key),
      element('ETag', quoted(done.etag)),
      done.checksum
        ? element(`Checksum${done.checksum.algorithm}`, done.checksum.value) +
          element('ChecksumType', done.checksum.type)
        : '',
    ].join(''),
  )
}

/** The staged part for each one wanted. Throws InvalidPart, EntityTooSmall, InvalidRequest. */
function matchParts(
  upload: UploadRecord,
  wanted: readonly PartWanted[],
  staged: readonly PartRecord[],
  minPartBytes: number,
): PartRecord[] {
  const byNumber = new Map(staged.map((part) => [part.partNumber, part]))
  return wanted.map((want, i) => {
    refuseMissingChecksum(upload, want)
    const part = byNumber.get(want.partNumber)
    const sameChecksum = Object.entries(want.checksums).every(
      ([name, value]) => part?.checksum?.algorithm === name && part.checksum.value === value,
    )
    if (!part || part.etag !== want.etag || !sameChecksum)
      throw new S3Error('InvalidPart', { fields: { PartNumber: want.partNumber, ETag: want.etag } })
    if (part.size < minPartBytes && i < wanted.length - 1) {
      throw new S3Error('EntityTooSmall', {
        fields: { ProposedSize: part.size, MinSizeAllowed: minPartBytes, PartNumber: part.partNumber, ETag: part.etag },
      })
    }
    return part
  })
}

/** A composite checksum is over those of the parts: S3 wants to hear every one again. */
function refuseMissingChecksum(upload: UploadRecord, want: PartWanted): void {
  if (upload.checksum?.type !== 'COMPOSITE' || want.checksums[upload.checksum.algorithm] !== undefined) return
  throw new S3Error('InvalidRequest', {
    message: `The upload was created using a ${upload.checksum.algorithm.toLowerCase()} checksum. The complete request must include the checksum for each part. It was missing for part ${want.partNumber} in the request.`,
  })
}

function refuseWrongSize(request: S3Request<'object'>, size: number, maxObjectBytes: number): void {
  if (size > maxObjectBytes)
    throw new S3Error('EntityTooLarge', { fields: { ProposedSize: size, MaxSizeAllowed: maxObjectBytes } })
  const declared = headerText(request.headers, 'x-amz-mp-object-size')
  if (declared !== undefined && declared !== String(size)) {
    throw new S3Error('InvalidRequest', {
      message: `The parts have ${size} bytes together, but x-amz-mp-object-size says ${declared}.`,
    })
  }
}

/** MD5 of the parts' MD5s, and how many. */
function etagOfParts(parts: readonly PartRecord[]): string {
  const md5 = createHash('md5')
  for (const part of parts) md5.update(part.etag, 'hex')
  return `${md5.digest('hex')}-${parts.length}`
}

function staged(
  context: Context,
  uploadId: string,
  parts: readonly PartRecord[],
  size: number,
  expected: ExpectedChecksum | undefined,
): Source {
  return {
    length: size,
    async stream(sink, options) {
      const facts = await digesting(
        async (to) => {
          for (const part of parts) await context.state.uploads.readPart(uploadId, part, to)
        },
        sink,
        expected ? { ...options, checksum: expected.algorithm } : options,
      )
      if (expected && facts.checksum?.value !== expected.value) throw wrongChecksum(expected.algorithm)
      return facts
    },
  }
}

function runLengths(parts: readonly PartRecord[]): [bytes: number, count: number][] {
  const runs: [number, number][] = []
  for (const { size } of parts) {
    const last = runs.at(-1)
    if (last?.[0] === size) last[1]++
    else runs.push([size, 1])
  }
  return runs
}

import { createHash } from 'node:crypto'
import type { Context } from '../../context.js'
import { S3Error } from '../../errors/s3-error.js'
import { defineOperation } from '../../registry/operation.js'
import type { S3Request } from '../../request/s3-request.js'
import { type LateDocument, late } from '../../response/reply.js'
import { isOfBucket } from '../../state/end-uploads.js'
import type { CompletedUpload, PartRecord, UploadRecord } from '../../state/state.js'
import { digesting } from '../../store/digesting.js'
import type { PutRequest, PutResult, Source } from '../../store/store.js'
import { document, element } from '../../xml.js'
import { causeOf } from '../common/cause.js'
import { quoted } from '../common/etags.js'
import { headerText } from '../common/headers.js'
import { admitClass, writeAdmitted } from '../common/storage-class.js'
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
function complete(
  request: S3Request<'object'>,
  context: Context,
  wanted: readonly PartWanted[],
): Promise<LateDocument> {
  const uploadId = request.query.get('uploadId') ?? ''
  return context.state.locks.withName(`complete/${uploadId}`, async () => {
    const fingerprint = createHash('sha256').update(JSON.stringify(wanted)).digest('base64url')
    const done = await context.state.uploads.completed(uploadId)
    if (done && isOwn(done, request, context) && done.request === fingerprint) return answer(request, done)
    const upload = await context.state.uploads.get(uploadId)
    if (!upload || !isOwn(upload, request, context)) throw new S3Error('NoSuchUpload')
    await requirePresentBucket(upload, context)
    try {
      return answer(request, await assemble(request, context, upload, wanted, fingerprint))
    } catch (error) {
      // Its parts went while they were read: the bucket was deleted.
      throw (await context.state.uploads.get(uploadId)) ? error : new S3Error('NoSuchUpload', { cause: error })
    }
  })
}

/** Ends the upload and throws NoSuchUpload when its bucket has gone and there is another one of that name. */
async function requirePresentBucket(upload: UploadRecord, context: Context): Promise<void> {
  if (upload.birth === undefined || isOfBucket(upload, await context.births.now(upload.bucket))) return
  await context.state.uploads.abort(upload.uploadId)
  throw new S3Error('NoSuchUpload')
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
  const stored =
    (await storedBefore(request, context, upload)) ??
    (await store(request, context, upload, {
      source: staged(context, upload.uploadId, parts, size, expected),
      etag: etagOfParts(parts),
      checksum,
      partSizes: runLengths(parts),
      partChecksums: upload.checksum && {
        algorithm: upload.checksum.algorithm,
        values: parts.map((part) => part.checksum?.value ?? ''),
      },
      size,
    }))
  const done: CompletedUpload = {
    uploadId: upload.uploadId,
    bucket: upload.bucket,
    key: upload.key,
    accessKeyId: upload.accessKeyId,
    etag: stored.etag,
    checksum: stored.checksum,
    jobId: stored.jobId,
    request: fingerprint,
  }
  await context.state.uploads.finish(done)
  return done
}

interface Stored extends Pick<PutResult, 'etag' | 'checksum'> {
  readonly jobId?: string
}

/**
 * The object, if it was stored and the process, or its state, failed before that could be said. Looked for only where storing it again would cost money, or be refused
 * because of the object itself.
 */
async function storedBefore(
  { headers }: S3Request<'object'>,
  context: Context,
  upload: UploadRecord,
): Promise<Stored | undefined> {
  if (upload.storageClass === undefined && writePrecondition(headers) === undefined) return undefined
  const object = await context.store.findToWrite(upload.bucket, upload.key)
  return object?.uploadId === upload.uploadId ? { ...object, jobId: object.archive?.jobId } : undefined
}

interface Assembled extends Pick<PutRequest, 'source' | 'etag' | 'checksum' | 'partSizes' | 'partChecksums'> {
  readonly size: number
}

async function store(
  request: S3Request<'object'>,
  context: Context,
  upload: UploadRecord,
  { size, ...assembled }: Assembled,
): Promise<Stored> {
  const { bucket, key, contentType, headers, metadata, tags, uploadId } = upload
  const precondition = writePrecondition(request.headers)
  const write = { operation: 'CompleteMultipartUpload', bucket, key, metadata, headers: request.headers, size } as const
  const admitted = await admitClass(upload.storageClass, write, context)
  const { result } = await writeAdmitted(context, admitted, upload, (archive) =>
    context.store.put({
      ...assembled,
      bucket,
      key,
      attributes: { contentType, headers, metadata },
      tags,
      archive,
      uploadId,
      event: causeOf('ObjectCreated:CompleteMultipartUpload', request, context),
      precondition,
      maxBytes: context.limits.maxObjectBytes,
    }),
  )
  return { ...result, jobId: admitted?.archive.jobId }
}

function answer(request: S3Request<'object'>, done: CompletedUpload): LateDocument {
  const markup = document(
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
  return { document: markup, headers: { 'x-dealgate-job-id': done.jobId } }
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

import { createHash } from 'node:crypto'
import { S3Error } from '../../../common/errors/s3-error.js'
import { quoted } from '../../../common/etags.js'
import { document, element } from '../../../common/xml.js'
import type { Context } from '../../api/context.js'
import type { ServerKey, UploadEncryption } from '../../api/encryption.js'
import type { LateDocument, S3Request } from '../../api/request.js'
import type { PutRequest, PutResult, Source } from '../../api/store.js'
import type { CompletedUpload, PartRecord, UploadRecord } from '../../api/uploads.js'
import { late } from '../../http/reply.js'
import { defaultChecksum } from '../../objects/default-checksum.js'
import { digesting } from '../../objects/sources.js'
import { defineOperation } from '../../plugins/define-plugin.js'
import { isOfBucket } from '../../state/uploads/upload-sweep.js'
import { writeIdOf } from '../../state/uploads/uploads.js'
import { expirationHeader } from '../lifecycle/headers.js'
import { causeOf, headerText } from '../object/attributes.js'
import { ENCRYPTION_HEADERS, encryptionHeaders, keyForUpload } from '../object/encryption.js'
import { admitClass, writeAdmitted } from '../object/storage-class.js'
import { writePrecondition } from '../object/write-conditions.js'
import { versionHeaders } from '../versions/version.js'
import { attemptOf, StoredAlready, tookEffect } from './attempts.js'
import {
  checkExpectedChecksum,
  checksumOfParts,
  defaultChecksumOfParts,
  type ExpectedChecksum,
  type PartWanted,
  readPartList,
  wrongChecksum,
} from './part-list.js'
import { allParts, isOwn, missingUpload, noSuchUpload } from './upload.js'

export const completeMultipartUpload = defineOperation({
  name: 'CompleteMultipartUpload',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_CompleteMultipartUpload.html',
  access: 'signed',
  action: 's3:PutObject',
  keeps: 'uploads',
  needs: { key: 'write' },
  on: { method: 'POST', resource: 'object', query: ['uploadId'], headers: ENCRYPTION_HEADERS },
  async run(request, context) {
    const wanted = await readPartList(request, context)
    return late(complete(request, context, wanted))
  },
})

/**
 * Completes one upload at a time: clients repeat the call after a timeout, and the second call must get the answer of
 * the first.
 */
function complete(
  request: S3Request<'object'>,
  context: Context,
  wanted: readonly PartWanted[],
): Promise<LateDocument> {
  const uploadId = request.query.get('uploadId') ?? ''
  const run = async () => {
    const fingerprint = createHash('sha256').update(JSON.stringify(wanted)).digest('base64url')
    const done = await context.state.uploads.completed(uploadId)
    if (done && isOwn(done, request, context) && done.request === fingerprint) return answer(request, done)
    const upload = await context.state.uploads.get(uploadId)
    if (!upload || !isOwn(upload, request, context)) throw await missingUpload(request, context)
    await requirePresentBucket(upload, context)
    await context.state.uploads.requireHere(upload)
    // The parts need the key: the answer of an upload that is complete does not.
    const customer = keyForUpload(request, context, upload.encryption)
    if (customer) await context.store.requireUploadKey(upload, customer)
    try {
      return answer(request, await assemble(request, context, upload, wanted, fingerprint))
    } catch (error) {
      // The upload was removed while its parts were read, because the bucket was deleted.
      throw (await context.state.uploads.get(uploadId)) ? error : noSuchUpload(request, error)
    }
  }
  return context.state.locks.withName(`complete/${uploadId}`, run, { logger: context })
}

/** Aborts the upload and throws NoSuchUpload if another bucket of the same name has replaced its bucket. */
async function requirePresentBucket(upload: UploadRecord, context: Context): Promise<void> {
  if (upload.birth === undefined || isOfBucket(upload, await context.creationTimes.now(upload.bucket))) return
  await context.state.uploads.abort(upload.uploadId, context)
  throw new S3Error('NoSuchUpload', { fields: { UploadId: upload.uploadId } })
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
  const agreed = await checksumOfParts(upload, parts)
  const expected = checkExpectedChecksum(request, agreed)
  const etag = etagOfParts(parts)
  // Decided when it began, unless a part is a copy, which does not lose the encryption of its source.
  const encryption = upload.encryption ?? parts.find(({ copied }) => copied)?.copied
  const combines = !agreed && !expected && defaultChecksum(encryption)
  const checksum = combines ? defaultChecksumOfParts(parts) : agreed
  const before = await storedBefore(request, context, upload)
  const made = before ? undefined : await tookEffect(context, upload, fingerprint)
  const stored =
    before ??
    (made && { ...made, etag, checksum }) ??
    (await store(request, context, upload, {
      source: staged(context, upload, parts, size, expected),
      etag,
      checksum,
      partSizes: runLengths(parts),
      writeId: writeIdOf(upload, fingerprint),
      fingerprint,
      partChecksums: upload.checksum && {
        algorithm: upload.checksum.algorithm,
        values: parts.map((part) => part.checksum?.value ?? ''),
      },
      size,
      encryption: encryption ?? 'none',
    }).catch((error): Stored => {
      if (error instanceof StoredAlready) return { ...error.made, etag, checksum }
      throw error
    }))
  const expiration = await expirationOfStored(context, upload, stored, size)
  const done: CompletedUpload = {
    uploadId: upload.uploadId,
    bucket: upload.bucket,
    key: upload.key,
    accessKeyId: upload.accessKeyId,
    etag: stored.etag,
    checksum: stored.checksum,
    ...(encryption && { encrypted: described(encryption) }),
    jobId: stored.jobId,
    ...(stored.versionId !== undefined && { versionId: stored.versionId }),
    ...(expiration !== undefined && { expiration }),
    request: fingerprint,
  }
  await context.state.uploads.finish(done, context)
  return done
}

/**
 * The x-amz-expiration of the stored object, as in answers to other writes; undefined for an object that an earlier
 * call stored and a later write replaced.
 */
async function expirationOfStored(
  context: Context,
  { bucket, key, tags }: UploadRecord,
  { lastModified }: Stored,
  size: number,
): Promise<string | undefined> {
  if (lastModified === undefined) return undefined
  return expirationHeader(context, bucket, { key, size, lastModified, ...(tags && { tags }) })
}

function described({ algorithm, keyId, bucketKey }: UploadEncryption | ServerKey): CompletedUpload['encrypted'] {
  return { algorithm, ...(keyId !== undefined && { keyId }), ...(bucketKey && { bucketKey }) }
}

interface Stored extends Pick<PutResult, 'etag' | 'checksum' | 'versionId'> {
  readonly lastModified?: string
  readonly jobId?: string
}

/**
 * Finds the object if an earlier call stored it, but the process or its state failed before the answer. Searches only
 * if storing it again would cost money, or fail its precondition because of the stored object.
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

interface Assembled
  extends Pick<PutRequest, 'source' | 'etag' | 'checksum' | 'partSizes' | 'partChecksums' | 'writeId' | 'encryption'> {
  readonly size: number
  readonly fingerprint: string
}

async function store(
  request: S3Request<'object'>,
  context: Context,
  upload: UploadRecord,
  { size, fingerprint, ...assembled }: Assembled,
): Promise<Stored> {
  const { bucket, key, contentType, headers, metadata, label, tags, acl, uploadId } = upload
  const precondition = writePrecondition(request.headers)
  // The identity may have lost the right since it created the upload.
  const authorized = await context.checks.authorize(metadata, { bucket, key }, upload)
  const { headers: sent } = request
  const operation = 'CompleteMultipartUpload'
  const { encryption } = assembled
  const described = { metadata, authorized, headers: sent, size, encryption, uploadId }
  const write = { operation, bucket, key, ...described } as const
  const admitted = await admitClass(upload.storageClass, write, context)
  const { result } = await writeAdmitted(context, admitted, upload, (archive) =>
    context.store.put({
      ...assembled,
      attempt: attemptOf(context, upload, fingerprint),
      bucket,
      key,
      attributes: { contentType, headers, metadata, ...(label !== undefined && { label }) },
      tags,
      acl,
      archive,
      lock: upload.lock,
      authorized,
      uploadId,
      event: causeOf('ObjectCreated:CompleteMultipartUpload', request, context),
      precondition,
      maxBytes: context.limits.maxObjectBytes,
    }),
  )
  return { ...result, jobId: (result.archive ?? admitted?.archive)?.jobId }
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
  const headers = { 'x-dealgate-job-id': done.jobId, 'x-amz-expiration': done.expiration }
  return { document: markup, headers: { ...headers, ...encryptionHeaders(done), ...versionHeaders(done) } }
}

/** Finds the staged part for each requested one. Throws InvalidPart, EntityTooSmall, InvalidRequest. */
function matchParts(
  upload: UploadRecord,
  wanted: readonly PartWanted[],
  staged: readonly PartRecord[],
  minPartBytes: number,
): PartRecord[] {
  const byNumber = new Map(staged.map((part) => [part.partNumber, part]))
  const parts = wanted.map((want) => {
    refuseMissingChecksum(upload, want)
    const part = byNumber.get(want.partNumber)
    const sameChecksum = Object.entries(want.checksums).every(
      ([name, value]) => part && checksumOfPart(part, name) === value,
    )
    if (!part || part.etag !== want.etag || !sameChecksum)
      throw new S3Error('InvalidPart', {
        fields: { UploadId: upload.uploadId, PartNumber: want.partNumber, ETag: want.etag },
      })
    return part
  })
  // A list that names a part which is not there is wrong whatever the others are.
  const small = parts.slice(0, -1).find(({ size }) => size < minPartBytes)
  if (!small) return parts
  const { size, partNumber, etag } = small
  throw new S3Error('EntityTooSmall', {
    fields: { ProposedSize: size, MinSizeAllowed: minPartBytes, PartNumber: partNumber, ETag: etag },
  })
}

function checksumOfPart({ checksum, crc64 }: PartRecord, algorithm: string): string | undefined {
  if (checksum?.algorithm === algorithm) return checksum.value
  return algorithm === 'CRC64NVME' ? crc64 : undefined
}

/** S3 requires the checksum of every part again for a composite checksum. */
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

/** MD5 of the parts' MD5s, and the number of parts. */
function etagOfParts(parts: readonly PartRecord[]): string {
  const md5 = createHash('md5')
  for (const part of parts) md5.update(part.etag, 'hex')
  return `${md5.digest('hex')}-${parts.length}`
}

function staged(
  context: Context,
  upload: UploadRecord,
  parts: readonly PartRecord[],
  size: number,
  expected: ExpectedChecksum | undefined,
): Source {
  return {
    length: size,
    async stream(sink, options) {
      const facts = await digesting(
        async (to) => {
          for (const part of parts) await context.store.readPart(upload, part, to)
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

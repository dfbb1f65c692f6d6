import { S3Error } from '../../../common/errors/s3-error.js'
import { quoted } from '../../../common/etags.js'
import { xmlTime } from '../../../common/time.js'
import { document, element } from '../../../common/xml.js'
import { askedOf } from '../../access/required-actions.js'
import { METADATA_DIRECTIVE, readMetadataDirective } from '../../access/values/header-values.js'
import type { ObjectAcl } from '../../api/access.js'
import type { AdmittedWrite } from '../../api/archive.js'
import type { Context } from '../../api/context.js'
import type { CustomerKey, EncryptionOrder } from '../../api/encryption.js'
import type { LateDocument, S3Request } from '../../api/request.js'
import type { Precondition, PutRequest, PutResult, StoredObject } from '../../api/store.js'
import { late } from '../../http/reply.js'
import { TAGGING, TAGGING_DIRECTIVE, taggingOfCopy } from '../../http/tags.js'
import { defineOperation } from '../../plugins/define-plugin.js'
import { aclOfWrite } from '../access/acl-operations.js'
import { OBJECT_ACL_HEADERS } from '../access/acl-syntax.js'
import { askedLock, LOCK_HEADERS } from '../versions/lock-headers.js'
import {
  causeOf,
  checksumAlgorithmHeader,
  headerText,
  labelOf,
  ownMetadata,
  REDIRECT,
  readAttributes,
  redirectOf,
} from './attributes.js'
import {
  type CopySource,
  checkSource,
  copiedBytes,
  headSource,
  readCopySource,
  readingOf,
  SourceChanged,
  sourceVersionHeaders,
  whileSourceChanges,
} from './copy-source.js'
import {
  askedEncryption,
  CUSTOMER_HEADERS,
  customerKey,
  ENCRYPTION_HEADERS,
  inherited,
  SOURCE_CUSTOMER_HEADERS,
  SSE,
} from './encryption.js'
import { admitClass, askedClass, writeAdmitted } from './storage-class.js'
import { writePrecondition } from './write-conditions.js'
import { writtenHeaders } from './written-headers.js'

export const copyObject = defineOperation({
  name: 'CopyObject',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_CopyObject.html',
  partly:
    'aws:kms:dsse and a context of encryption are NotImplemented, as is object lock on a gateway that cannot lock objects, archive classes that no plugin offers InvalidStorageClass. A copy of an object onto itself into an archive class leaves its bytes, ETag and LastModified as they are.',
  access: 'signed',
  action: 's3:PutObject',
  needs: { key: 'write' },
  on: {
    method: 'PUT',
    resource: 'object',
    header: 'x-amz-copy-source',
    headers: [
      ...[TAGGING, TAGGING_DIRECTIVE, REDIRECT, ...LOCK_HEADERS],
      ...[...ENCRYPTION_HEADERS, ...SOURCE_CUSTOMER_HEADERS],
      ...OBJECT_ACL_HEADERS,
    ],
    metadata: true,
  },
  async run(request, context) {
    refuseRanges(request)
    const acl = await aclOfWrite(request, context)
    const from = await readCopySource(request, context)
    await context.authorizer.decide(readingOf(from))
    // Errors of the request itself are sent before the answer begins.
    const start = await prepare(request, context, from, acl)
    return late(whileSourceChanges(start, async () => (await prepare(request, context, from, acl))()))
  },
})

/** Reads the source's metadata and checks the request; returns the function that copies. */
async function prepare(
  request: S3Request<'object'>,
  context: Context,
  from: CopySource,
  acl: ObjectAcl | undefined,
): Promise<() => Promise<LateDocument>> {
  const source = await headSource(context, from)
  if (source.cold) throw new S3Error('ObjectNotInActiveTierError')
  const customer = customerKey(request, context, SOURCE_CUSTOMER_HEADERS)
  await context.store.requireCustomerKey(source, customer)
  checkSource(request, source)
  const ontoItself = isItself(request, from)
  const lock = await askedLock({ headers: request.headers, bucket: request.bucket, key: request.key }, context)
  const inPlace = ontoItself && !lock && (await staysInPlace(request, context, source))
  // A copy in place changes only records of this server, so no gateway call checks the caller's rights.
  if (inPlace) await context.checks.requireOwner(request.bucket)
  if (!inPlace && source.size > context.limits.maxPutBytes) {
    throw new S3Error('InvalidRequest', {
      message: `The specified copy source is larger than the maximum allowable size for a copy source: ${context.limits.maxPutBytes}`,
    })
  }
  const directive = metadataDirective(request)
  const attributes = copiedAttributes(request, context, source, { directive, ontoItself })
  const tags = taggingOfCopy(request.headers, source.tags)
  // A copy must not reveal the tags of an object to an account that may not read them.
  if (tags === source.tags && tags?.length) {
    const { bucket, key, ref } = from
    const reading = askedOf('s3:GetObjectTagging', { bucket, key, versionId: ref?.id })
    await context.authorizer.decide(reading)
    const setting = { bucket: request.bucket, key: request.key, more: { requested: tags } }
    await context.authorizer.decide({ action: 's3:PutObjectTagging', ...setting })
    if (bucket !== request.bucket) await context.checks.requireOwner(bucket, { action: reading.action, key })
  }
  const precondition = writePrecondition(request.headers)
  const current = precondition && (await context.store.findToWrite(request.bucket, request.key))
  const writeId = request.own?.writeId
  if (writeId === undefined || writeId !== current?.writeId) precondition?.(current)
  const { bucket, key, headers } = request
  const { metadata } = attributes
  const authorized = await context.checks.authorize(
    metadata,
    { bucket, key },
    directive === 'COPY' ? source : undefined,
  )
  const kept = inPlace ? source : undefined
  const { size } = source
  const asked = askedEncryption(request, context)
  // A copy does not lose the encryption of its source.
  const encryption = (asked ?? (await context.store.encryptionFor(bucket))) ? asked : inherited(source)
  const described = { attributes, tags, acl, authorized, encryption, lock }
  const write = { operation: 'CopyObject', bucket, key, metadata, authorized, headers, size, kept, encryption } as const
  const admitted = await admitClass(askedClass(headers), write, context)
  return () =>
    inPlace
      ? copyInPlace(request, context, source, described, admitted)
      : copy(request, context, source, { ...described, customer, ontoItself }, admitted)
}

/** Throws InvalidArgument for a range, because CopyObject copies whole objects. */
function refuseRanges({ headers }: S3Request<'object'>): void {
  for (const [header, name, message] of [
    ['range', 'Range', 'RANGE is not supported in Copy!'],
    ['x-amz-copy-source-range', 'x-amz-copy-source-range', 'Illegal copy header'],
  ] as const) {
    const value = headerText(headers, header)
    if (value === undefined) continue
    throw new S3Error('InvalidArgument', {
      message,
      fields: { ArgumentName: name, ArgumentValue: value.slice(0, 100) },
    })
  }
}

async function copy(
  request: S3Request<'object'>,
  context: Context,
  source: StoredObject,
  {
    customer,
    ontoItself,
    ...described
  }: Pick<PutRequest, 'attributes' | 'tags' | 'acl' | 'authorized' | 'lock'> & {
    readonly encryption: EncryptionOrder | undefined
    /** The key of the source. */
    readonly customer: CustomerKey | undefined
    readonly ontoItself: boolean
  },
  admitted: AdmittedWrite | undefined,
): Promise<LateDocument> {
  const asked = checksumAlgorithmHeader(request.headers, 'x-amz-checksum-algorithm')
  const { result, headers } = await writeAdmitted(context, admitted, request, async (archive) => {
    if (admitted?.repeats) return admitted.repeats
    return context.store.put({
      bucket: request.bucket,
      key: request.key,
      source: copiedBytes(context, source, { customer }),
      ...described,
      archive,
      // The bytes are the same, so a checksum of the whole object stays valid.
      checksum: asked === undefined && source.checksum?.type === 'FULL_OBJECT' ? source.checksum : undefined,
      wantChecksum: asked ?? (source.checksum?.type === 'COMPOSITE' ? source.checksum.algorithm : undefined),
      event: causeOf('ObjectCreated:Copy', request, context),
      ...(request.own?.writeId !== undefined && { writeId: request.own.writeId }),
      precondition: ontoItself ? unlessChanged(request, source) : writePrecondition(request.headers),
      maxBytes: context.limits.maxPutBytes,
    })
  })
  const written = await writtenHeaders(
    context,
    { bucket: request.bucket, key: request.key, tags: described.tags, encryption: described.encryption },
    result,
  )
  return { document: copyDocument(result), headers: { ...headers, ...written, ...sourceVersionHeaders(source) } }
}

/**
 * For a copy of an object onto itself, prevents older bytes from replacing an object that was written or removed
 * meanwhile.
 */
function unlessChanged(request: S3Request<'object'>, source: StoredObject): Precondition {
  const asked = writePrecondition(request.headers)
  return (current) => {
    asked?.(current)
    if (current?.revision !== source.revision) throw new SourceChanged()
  }
}

/** A copy of a version that it names makes it the current one again. */
function isItself(request: S3Request<'object'>, { bucket, key, ref }: CopySource): boolean {
  return bucket === request.bucket && key === request.key && ref === undefined
}

/** Throws InvalidArgument. */
function metadataDirective({ headers }: S3Request<'object'>): 'COPY' | 'REPLACE' {
  return readMetadataDirective(headerText(headers, METADATA_DIRECTIVE) ?? 'COPY')
}

/**
 * Returns the attributes of the source or, with x-amz-metadata-directive REPLACE, of the request. Throws InvalidRequest
 * for a copy of an object onto itself that changes nothing; one that names a checksum algorithm adds the checksum.
 */
function copiedAttributes(
  request: S3Request<'object'>,
  context: Context,
  source: StoredObject,
  { directive, ontoItself }: { readonly directive: 'COPY' | 'REPLACE'; readonly ontoItself: boolean },
): PutRequest['attributes'] {
  if (directive === 'REPLACE') return readAttributes(request.headers, context)
  const changed = ['x-amz-storage-class', REDIRECT, SSE, ...CUSTOMER_HEADERS].some(
    (name) => request.headers[name] !== undefined,
  )
  if (ontoItself && !changed && !checksumAlgorithmHeader(request.headers, 'x-amz-checksum-algorithm')) {
    throw new S3Error('InvalidRequest', {
      message:
        "This copy request is illegal because it is trying to copy an object to itself without changing the object's metadata, storage class, website redirect location or encryption attributes.",
    })
  }
  const { contentType, metadata } = source
  // A redirect belongs to the one object: a copy has that of its own request, or none.
  const { [REDIRECT]: _, ...kept } = source.headers
  const headers = { ...kept, ...redirectOf(request.headers) }
  return { contentType, headers, metadata: ownMetadata(metadata, context), ...labelOf(request.headers, context) }
}

/**
 * Returns true for a copy of an object onto itself into an archive class: the bytes stay in place, and archived copies
 * remain copies of this object. The bytes are read only to compute a checksum that the object does not have yet. In a
 * versioned bucket, every copy makes a version.
 */
async function staysInPlace(request: S3Request<'object'>, context: Context, source: StoredObject): Promise<boolean> {
  const { headers } = request
  const wanted = checksumAlgorithmHeader(headers, 'x-amz-checksum-algorithm')
  const { checksum } = source
  const sameChecksum = wanted === undefined || (checksum?.algorithm === wanted && checksum.type === 'FULL_OBJECT')
  if (source.versionId !== undefined || askedClass(headers) === undefined || !sameChecksum) return false
  // The default applies to copies, too: an archive must not get bytes that are to be encrypted, or with another key.
  return context.store.keepsEncryption(source, askedEncryption(request, context))
}

/** Throws SourceChanged if the object has been replaced since it was read. */
async function copyInPlace(
  request: S3Request<'object'>,
  context: Context,
  source: StoredObject,
  described: Pick<PutRequest, 'attributes' | 'tags' | 'acl' | 'authorized'>,
  admitted: AdmittedWrite | undefined,
): Promise<LateDocument> {
  const { bucket, key } = request
  const event = causeOf('ObjectCreated:Copy', request, context)
  const { result, headers } = await writeAdmitted(context, admitted, request, (archive) =>
    context.store.replaceMetadata({ bucket, key, revision: source.revision, ...described, archive, event }),
  )
  if (!result) throw new SourceChanged()
  const written = await writtenHeaders(context, { bucket, key, tags: described.tags }, result)
  return { document: copyDocument(result), headers: { ...headers, ...written } }
}

/** https://docs.aws.amazon.com/AmazonS3/latest/API/API_CopyObject.html#API_CopyObject_ResponseSyntax */
function copyDocument({ lastModified, etag, checksum }: PutResult): string {
  return document(
    'CopyObjectResult',
    [
      element('LastModified', xmlTime(lastModified)),
      element('ETag', quoted(etag)),
      checksum ? element('ChecksumType', checksum.type) + element(`Checksum${checksum.algorithm}`, checksum.value) : '',
    ].join(''),
  )
}

import type { IncomingHttpHeaders } from 'node:http'
import type { Context } from '../../../src/context.js'
import { S3Error } from '../../../src/errors/s3-error.js'
import { metadataHeaders } from '../../../src/operations/common/archive-report.js'
import { headerText } from '../../../src/operations/common/headers.js'
import type { AdmittedWrite, ClassWrite } from '../../../src/registry/storage-class.js'
import type { ReplyHeaders } from '../../../src/response/reply.js'
import type { Archive } from '../../../src/state/state.js'
import { type ArchiveClass, classOf, configurationOf } from '../configuration.js'
import { OBJECT_DEAL, type ObjectDealInput } from '../jobs/inputs.js'
import { refuseUnsafe } from '../jobs/subject.js'
import type { DealParts } from '../parts.js'
import type { DealTerms } from '../terms.js'
import { remember, settle } from './held-deal.js'
import { dealOf } from './kept-elsewhere.js'

const MODE = 'x-dealgate-deal-mode'
/** How long a client that waits for its deal waits at most, ms: after 60 s of silence clients send the whole object again, and would pay for it again. */
const SYNC_MS = 50_000

/**
 * A write into a class of ours: the deal is put on record, held, before the body is read, and begins once the object is safe. Throws InvalidStorageClass when nothing says on
 * what terms, DealTermsInvalid, AccessDenied, InvalidArgument.
 */
export async function admit(
  parts: DealParts,
  word: string,
  write: ClassWrite,
  context: Context,
): Promise<AdmittedWrite> {
  const { bucket, key, operation, kept } = write
  const waits = readMode(write.headers)
  // The deal is made of what the object holds, in the name of whoever stores it.
  context.requireKey(bucket, key, 'read')
  await refuseUnsafe(context, key)
  const storageClass = await mustBeClass(parts, context, bucket, word)
  const terms = await mustHaveTerms(parts, context, write, storageClass)
  if (operation === 'CreateMultipartUpload') return withoutDeal({ storageClass })
  const known = kept && (await dealOf(parts, kept))
  if (kept && known) {
    const { restore, ...archive } = kept.archive ?? {}
    const stays = storageClass === 'GLACIER_IR' ? {} : { restore }
    const changed = { ...archive, ...stays, ...known, storageClass }
    return withoutDeal(changed, () => remember(parts, context, { ...kept, archive: changed }))
  }
  const accessKeyId = context.caller?.identity.accessKeyId ?? ''
  const input: ObjectDealInput = { bucket, key, terms, cause: 'class' }
  const job = await parts.jobs.create({
    kind: OBJECT_DEAL,
    resource: `/${bucket}/${key}`,
    input,
    accessKeyId,
    held: true,
  })
  return {
    archive: { ...(kept?.archive?.facts && { facts: kept.archive.facts }), storageClass, jobId: job.id },
    async stored() {
      if (!(await settle(parts, context, job))) return {}
      const told = { 'x-dealgate-job-id': job.id }
      if (!waits) return told
      const { status } = await parts.jobs.wait(job.id, SYNC_MS)
      return { ...told, 'x-dealgate-job-status': status, ...(await factHeaders(context, bucket, key, job.id)) }
    },
    async dropped() {
      await settle(parts, context, job)
    },
  }
}

/** What HEAD tells of the object's deal by now. */
async function factHeaders(context: Context, bucket: string, key: string, jobId: string): Promise<ReplyHeaders> {
  const object = await context.store.findToWrite(bucket, key)
  return object?.archive?.jobId === jobId ? metadataHeaders({ ...object, metadata: {} }, context) : {}
}

/** There is nothing to be paid for (yet). */
function withoutDeal(archive: Archive, stored = async () => {}): AdmittedWrite {
  const headers = archive.jobId === undefined ? {} : { 'x-dealgate-job-id': archive.jobId }
  return { archive, stored: () => stored().then(() => headers), dropped: async () => {} }
}

function readMode(headers: IncomingHttpHeaders): boolean {
  const mode = headerText(headers, MODE) ?? 'async'
  if (mode === 'sync' || mode === 'async') return mode === 'sync'
  throw new S3Error('InvalidArgument', {
    message: `${MODE} is sync, to have the deal waited for, or async.`,
    fields: { ArgumentName: MODE, ArgumentValue: mode.slice(0, 100) },
  })
}

/** The class that a word means in this bucket. */
export async function mustBeClass(
  { options }: DealParts,
  context: Pick<Context, 'settings'>,
  bucket: string,
  word: string,
): Promise<ArchiveClass> {
  const meant = classOf(word, await configurationOf(context, bucket), options.storageClassMap)
  if (meant) return meant
  throw new S3Error('InvalidStorageClass', { message: `${word} is no storage class of this bucket.` })
}

async function mustHaveTerms(
  parts: DealParts,
  context: Context,
  { bucket, metadata }: ClassWrite,
  storageClass: ArchiveClass,
): Promise<DealTerms> {
  try {
    return await parts.termsFor(context, bucket, { metadata, storageClass })
  } catch (cause) {
    if (!(cause instanceof S3Error) || cause.code !== 'DealTermsRequired') throw cause
    throw new S3Error('InvalidStorageClass', {
      message: `Objects in the storage class ${storageClass} are kept by deals. ${cause.message}`,
      cause,
    })
  }
}

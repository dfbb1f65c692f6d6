import { createHash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { plainWarning, warningHeaders } from 'dealgate/paid'
import {
  type AdmittedWrite,
  type Archive,
  type ClassWrite,
  type Context,
  type Job,
  type ReplyHeaders,
  S3Error,
  type StoredObject,
} from 'dealgate/plugin'
import { type ArchiveClass, classOf, configurationOf } from '../configuration.js'
import type { AgreedTerms, DealDeps } from '../deps.js'
import { OBJECT_DEAL, type ObjectDealInput } from '../jobs/inputs.js'
import { dealOf } from '../records/held-deals.js'
import { versionNaming } from '../records/named-version.js'
import { payingAccount, refuseUnsafe } from '../subject.js'
import { readOfflineTerms } from '../terms/offline-terms.js'
import { refuseDearPrice } from '../terms/warnings.js'
import { releaseOrDrop, remember, restore } from './restore.js'

const MODE = 'x-dealgate-deal-mode'

/**
 * Longest time that a client waits for its deal, ms. After 60 s of silence clients send the whole object again, and
 * would pay for it again.
 */
const MAX_WAIT_MS = 50_000

/**
 * Admits a write into a class of this plugin. The job of the deal is created, held, before the body is read, and starts
 * once the object is stored.
 * @throws S3Error InvalidStorageClass when no terms are stated anywhere, DealTermsInvalid, DealPriceTooHigh,
 * AccessDenied, InvalidArgument, DuplicateRequest, ObjectNotEncrypted
 */
export async function admit(deps: DealDeps, word: string, write: ClassWrite, context: Context): Promise<AdmittedWrite> {
  const { bucket, key, operation, kept, storedSize } = write
  const waits = readMode(write.headers)
  // The deal packs what the object holds, on behalf of the caller who stores it.
  context.checks.requireKey(bucket, key, 'read')
  await refuseUnsafe(context, key)
  const storageClass = await mustBeClass(deps, context, bucket, word)
  const warned = warningHeaders(await warningOfWrite(context, write))
  if (storageClass === 'DEEP_ARCHIVE') return admitDeep(deps, write, context, warned)
  const agreed = await mustHaveTerms(deps, context, write, storageClass)
  if (operation === 'CreateMultipartUpload') return { ...withoutDeal({ storageClass }), headers: warned }
  const known = kept && (await dealOf(deps, kept))
  if (kept && known) {
    const { restore, failed: _, ...archive } = kept.archive ?? {}
    const stays = storageClass === 'GLACIER_IR' ? {} : { restore }
    const changed = { ...archive, ...stays, ...known, storageClass }
    return withoutDeal(changed, async () => {
      await remember(deps, context, { ...kept, archive: changed })
      if (storageClass === 'GLACIER_IR') await keepHere(deps, context, kept)
      return warned
    })
  }
  // The job checks the price of a body of unknown length.
  if (storedSize !== undefined) await refuseDearPrice(deps, context, agreed, () => ({ bytes: storedSize, objects: 1 }))
  const accessKeyId = context.caller?.identity.accessKeyId ?? ''
  const signature = context.caller?.proof?.signature
  const input: ObjectDealInput = { bucket, key, ...agreed, cause: 'class' }
  let job: Job<ObjectDealInput>
  try {
    job = await context.jobs.create({
      kind: OBJECT_DEAL,
      resource: `/${bucket}/${key}`,
      input,
      accessKeyId,
      held: true,
      // A captured write or a presigned URL pays once. The job of a write that failed is forgotten, so that the client
      // can send it again.
      ...(signature !== undefined && { signature: signatureHash(signature) }),
    })
  } catch (error) {
    const object = await storedBefore(deps, context, write, error)
    if (!object?.archive) throw error
    return { ...withoutDeal(object.archive, async () => warned), repeats: object }
  }
  return {
    archive: { ...(kept?.archive?.facts && { facts: kept.archive.facts }), storageClass, jobId: job.id },
    async stored() {
      if (!(await releaseOrDrop(deps, context, job))) return {}
      const reported = { ...warned, 'x-dealgate-job-id': job.id }
      if (!waits) return reported
      const { status } = await deps.jobs.wait(job.id, MAX_WAIT_MS)
      return { ...reported, 'x-dealgate-job-status': status, ...(await factHeaders(deps, context, job)) }
    },
    async dropped() {
      await releaseOrDrop(deps, context, job)
    },
  }
}

/** The warning for an object that is stored as it is. Throws S3Error ObjectNotEncrypted. */
async function warningOfWrite(
  context: Context,
  { bucket, key, encrypted, size }: ClassWrite,
): Promise<string | undefined> {
  if (encrypted || size === 0) return undefined
  return plainWarning(bucket, key, (await configurationOf(context, bucket))?.PublicNetwork)
}

/**
 * Returns the object that an earlier copy of this request stored, if it is still there: an SDK repeats a request
 * unchanged when the answer was lost. Returns undefined when the object was replaced, when the first request has not
 * stored it yet, and for writes whose answer is on record (CompleteMultipartUpload) or that have no signature.
 */
async function storedBefore(
  deps: DealDeps,
  context: Context,
  { bucket, key, operation, kept }: ClassWrite,
  error: unknown,
): Promise<StoredObject | undefined> {
  if (!(error instanceof S3Error) || error.code !== 'DuplicateRequest') return undefined
  if (kept || (operation !== 'PutObject' && operation !== 'CopyObject')) return undefined
  const job = await deps.jobs.get(String(error.fields.JobId))
  return job && versionNaming(deps, context, { bucket, key }, job)
}

/**
 * Restores the object if the gateway evicted its copy while the object was copied onto itself into a class whose
 * objects stay.
 */
async function keepHere(
  deps: DealDeps,
  context: Context,
  { bucket, key, revision }: Pick<StoredObject, 'bucket' | 'key' | 'revision'>,
): Promise<void> {
  const object = await context.store.findToWrite(bucket, key, { revision })
  if (!object?.cold) return
  try {
    await restore(deps, object, { days: 0, tier: 'Standard', description: '' }, context)
  } catch (error) {
    // The upkeep of local copies was faster.
    if (!(error instanceof S3Error) || error.code !== 'RestoreAlreadyInProgress') throw error
  }
}

/** The headers by which HEAD reports the object's deal now. */
async function factHeaders(deps: DealDeps, context: Context, job: Job<ObjectDealInput>): Promise<ReplyHeaders> {
  const object = await versionNaming(deps, context, job.input, job)
  return object ? context.archive.headers(object) : {}
}

/** Admits a write that pays for nothing, or not yet. */
function withoutDeal(archive: Archive, stored: () => Promise<ReplyHeaders> = async () => ({})): AdmittedWrite {
  const headers = archive.jobId === undefined ? {} : { 'x-dealgate-job-id': archive.jobId }
  return { archive, stored: async () => ({ ...(await stored()), ...headers }), dropped: async () => {} }
}

/** The hash that calls that make deals use, so that one signature pays once, whichever of them it is sent with. */
function signatureHash(signature: string): string {
  return createHash('sha256')
    .update(JSON.stringify([signature]))
    .digest('hex')
}

function readMode(headers: IncomingHttpHeaders): boolean {
  const mode = String(headers[MODE] ?? 'async')
  if (mode === 'sync' || mode === 'async') return mode === 'sync'
  throw new S3Error('InvalidArgument', {
    message: `${MODE} must be sync, which waits for the deal, or async.`,
    fields: { ArgumentName: MODE, ArgumentValue: mode.slice(0, 100) },
  })
}

/** The class that a word stands for in this bucket. Throws InvalidStorageClass. */
export async function mustBeClass(
  { options }: DealDeps,
  context: Pick<Context, 'settings'>,
  bucket: string,
  word: string,
): Promise<ArchiveClass> {
  const meant = classOf(word, await configurationOf(context, bucket), options.storageClassMap)
  if (meant) return meant
  throw new S3Error('InvalidStorageClass', { message: `${word} is not a storage class of this bucket.` })
}

/**
 * What a copy of an object onto itself, into a class, would cost: on the terms of which class, or why it is free.
 * @throws S3Error InvalidStorageClass, ObjectNotInActiveTierError
 */
export async function costOfMove(
  deps: DealDeps,
  context: Context,
  object: StoredObject,
  word: string,
): Promise<{ readonly storageClass: ArchiveClass; readonly free?: string }> {
  const storageClass = await mustBeClass(deps, context, object.bucket, word)
  if (object.cold) throw new S3Error('ObjectNotInActiveTierError')
  if (storageClass === 'DEEP_ARCHIVE') {
    await requireOfflineTerms(context, object.bucket)
    return { storageClass, free: 'The next offline deal of the bucket pays for the object.' }
  }
  // A copy in a versioned bucket is another object, and so is one that is encrypted otherwise.
  const inPlace = object.versionId === undefined && (await context.store.keepsEncryption(object))
  const held = inPlace && (await dealOf(deps, object)) !== undefined
  return { storageClass, ...(held && { free: 'A deal holds the object: its copy into the class makes no other.' }) }
}

async function mustHaveTerms(
  deps: DealDeps,
  context: Context,
  write: ClassWrite,
  storageClass: ArchiveClass,
): Promise<AgreedTerms> {
  try {
    return await deps.termsFor(context, write.bucket, { object: write, storageClass })
  } catch (cause) {
    if (!(cause instanceof S3Error) || cause.code !== 'DealTermsRequired') throw cause
    throw new S3Error('InvalidStorageClass', {
      message: `Objects in the storage class ${storageClass} are kept by deals. ${cause.message}`,
      cause,
    })
  }
}

/**
 * Admits a write into DEEP_ARCHIVE: the object is stored and marked, and the next offline deal of its bucket holds it.
 * Throws InvalidStorageClass when the bucket has no OfflineTerms, or is not the server's own.
 */
async function admitDeep(
  deps: DealDeps,
  write: ClassWrite,
  context: Context,
  headers: ReplyHeaders,
): Promise<AdmittedWrite> {
  const { bucket, key, kept } = write
  context.checks.requireKey(bucket, key, 'read')
  await requireOfflineTerms(context, bucket)
  await mark(deps, write)
  const { failed: _, ...others } = kept?.archive ?? {}
  const { facts, restore } = others
  const archive: Archive = kept ? { ...others } : { ...(facts && { facts }), ...(restore && { restore }) }
  return {
    archive: { ...archive, storageClass: 'DEEP_ARCHIVE' },
    headers,
    stored: async () => headers,
    // The mark of an object that is not stored is removed later.
    dropped: async () => {},
  }
}

/** Has the next offline deal of the bucket hold the object. */
export function mark(
  { marks, host }: DealDeps,
  { bucket, key }: { readonly bucket: string; readonly key: string },
): Promise<void> {
  return marks.set({ bucket, key, since: host.now() })
}

/** Throws InvalidStorageClass. */
export async function requireOfflineTerms(
  context: Pick<Context, 'caller' | 'settings'>,
  bucket: string,
): Promise<void> {
  if (payingAccount(context.caller) !== '')
    throw refused('The server makes offline deals in the buckets of its own gateway account only.')
  const terms = (await configurationOf(context, bucket))?.OfflineTerms
  if (!terms)
    throw refused(
      'Objects in the storage class DEEP_ARCHIVE are kept by offline deals: state OfflineTerms in the bucket’s deal configuration (?x-deal-config=) first.',
    )
  readOfflineTerms([terms], bucket)
}

function refused(message: string): S3Error {
  return new S3Error('InvalidStorageClass', { message })
}

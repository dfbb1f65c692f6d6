import type { Context } from '../../../src/context.js'
import { S3Error } from '../../../src/errors/s3-error.js'
import type { JobKind, RunningJob } from '../../../src/jobs/job.js'
import { presenceOf } from '../../../src/operations/common/presence.js'
import type { RestoreOrder } from '../../../src/registry/storage-class.js'
import type { StoredObject } from '../../../src/store/store.js'
import { bringingBack, patiently } from '../jobs/patience.js'
import type { DealParts } from '../parts.js'
import { bringBack } from './bring-back.js'
import { expiryOf } from './expiry.js'

/** Name of the job that brings an object back. */
export const RESTORE = 'deal:RestoreObject'

export interface RestoreInput extends Pick<RestoreOrder, 'days' | 'tier'> {
  readonly bucket: string
  readonly key: string
  /** Of the object that is meant. */
  readonly stamp: string
  /** The deal to bring it back from. */
  readonly dealCid?: string
}

export interface RestoreResult {
  readonly Bucket: string
  readonly Key: string
  /** RFC 3339; absent for an object that stays. */
  readonly RestoreExpiryDate?: string
}

export function restores(parts: DealParts): JobKind<RestoreInput, RestoreResult> {
  return {
    name: RESTORE,
    async run(job) {
      try {
        return await run(parts, job)
      } catch (error) {
        // Cancelled, or the server stops: what is left of a cancelled one is cleared away by the keeper.
        if (job.signal.aborted) throw error
        const thrown = patiently(job, error, parts.host.now(), bringingBack)
        if (thrown === error) await giveUp(parts, job.context, job.input)
        throw thrown
      }
    },
    /** Held until the object says that it is on its way. */
    async held({ job, context, input: { bucket, key, stamp } }) {
      const object = await context.store.findToWrite(bucket, key)
      const restore = object?.stamp === stamp ? object.archive?.restore : undefined
      if (!restore || !('ongoing' in restore)) return 'drop'
      await parts.copies.set({ bucket, key, stamp, restoring: job.id })
      return 'release'
    },
  }
}

async function run(parts: DealParts, job: RunningJob<RestoreInput>): Promise<RestoreResult> {
  const { context, input } = job
  const { bucket, key, stamp, days } = input
  job.report({ phase: 'Retrieving', tasks: { total: 1, succeeded: 0, failed: 0 } })
  const object = await bringBack(context, bucket, key, {
    ...input,
    signal: job.signal,
    report: (progress) => job.report(progress),
  })
  job.report({ phase: 'Verifying' })
  await mustRead(parts, context, object)
  const until = expiryOf(object, days, parts.host.now(), context)
  const known = await context.store.annotate(bucket, key, stamp, (archive) => ({ ...archive, restore: { until } }))
  if (!known) throw replaced()
  if (until === null) await parts.copies.forget({ bucket, key, stamp })
  else await parts.copies.set({ bucket, key, stamp, due: until })
  job.report({ tasks: { total: 1, succeeded: 1, failed: 0 } })
  await tellCompleted(parts, job, object, until)
  return {
    ...{ Bucket: bucket, Key: key },
    ...(until !== null && { RestoreExpiryDate: new Date(until).toISOString() }),
  }
}

/** The gateway says that the bytes are here: the first and the last are asked for. */
async function mustRead(
  { host }: DealParts,
  context: Context,
  { bucket, key, size, stamp }: StoredObject,
): Promise<void> {
  for (const position of new Set(size === 0 ? [] : [0, size - 1])) {
    const range = { first: position, last: position }
    const { object, download } = await context.store.open(bucket, key, range).catch((error) => {
      // Whoever may have an object restored need not be able to read it.
      if (!(error instanceof S3Error) || error.code !== 'AccessDenied') throw error
      return host.own.store.open(bucket, key, range)
    })
    if (object.stamp !== stamp) {
      download.discard()
      throw replaced()
    }
    await download.consume(() => {})
  }
}

function replaced(): S3Error {
  return new S3Error('PreconditionFailed', { message: 'The object was replaced while it was brought back.' })
}

/** It is as it was before it was asked back. */
export async function giveUp(
  { copies }: DealParts,
  { store }: Pick<Context, 'store'>,
  { bucket, key, stamp }: Pick<RestoreInput, 'bucket' | 'key' | 'stamp'>,
): Promise<void> {
  await store.annotate(bucket, key, stamp, (archive) => {
    const { restore, ...others } = archive ?? {}
    return restore && 'ongoing' in restore ? others : archive
  })
  await copies.forget({ bucket, key, stamp })
}

async function tellCompleted(
  { host }: DealParts,
  { job, context }: RunningJob<RestoreInput>,
  object: StoredObject,
  until: number | null,
): Promise<void> {
  const { bucket, key, size, etag } = object
  const { storageClass } = presenceOf({ ...object, cold: true }, context.storageClasses)
  await context.hooks.objectMoved({
    name: 'ObjectRestore:Completed',
    origin: { requestId: job.id, accessKeyId: job.accessKeyId, remoteAddress: '' },
    ...{ bucket, key, size, etag, storageClass, time: host.now() },
    ...(until !== null && { until }),
  })
}

import { type Context, type JobKind, type RunningJob, S3Error, type StoredObject } from 'dealgate/plugin'
import type { DealDeps } from '../deps.js'
import type { Version } from '../records/deal-records.js'
import { ofJob } from '../records/object-events.js'
import { bringingBack, runPatiently } from '../records/sequence.js'
import { bringBack, expiryOf, RESTORE, type RestoreInput, type RestoreResult } from './restore.js'

export function restores(deps: DealDeps): JobKind<RestoreInput, RestoreResult> {
  return {
    name: RESTORE,
    // The upkeep of local copies cleans up after a cancelled job.
    run: (job) =>
      deps.events.ofJob(job, ['RestoreRequested', 'RestoreFailed'], () =>
        runPatiently(job, () => run(deps, job), {
          now: () => deps.host.now(),
          times: bringingBack,
          failed: () => giveUp(deps, job.context, versionOf(job.input)),
        }),
      ),
    /** The job is held until the object is marked as restoring. */
    async held({ job, context, input }) {
      const { bucket, key, revision } = versionOf(input)
      const object = await context.store.findToWrite(bucket, key, { revision })
      const restore = object?.archive?.restore
      if (!restore || !('ongoing' in restore)) return 'drop'
      await deps.copies.set({ bucket, key, revision, restoring: job.id })
      return 'release'
    },
  }
}

async function run(deps: DealDeps, job: RunningJob<RestoreInput>): Promise<RestoreResult> {
  const { context, input } = job
  const { bucket, key, revision } = versionOf(input)
  job.report({ phase: 'Retrieving', tasks: { total: 1, succeeded: 0, failed: 0 } })
  const object = await bringBack(
    context,
    { bucket, key, revision },
    {
      ...(input.dealCid !== undefined && { dealCid: input.dealCid }),
      signal: job.signal,
      report: (progress) => job.report(progress),
    },
  )
  job.report({ phase: 'Verifying' })
  await mustRead(deps, context, object)
  const until = expiryOf(object, input.days, deps.host.now(), context)
  const known = await context.store.annotate(bucket, key, revision, (archive) => ({ ...archive, restore: { until } }))
  if (!known) throw replaced()
  if (until === null) await deps.copies.forget({ bucket, key, revision })
  else await deps.copies.set({ bucket, key, revision, due: until })
  job.report({ tasks: { total: 1, succeeded: 1, failed: 0 } })
  await deps.events.add(input, { ...ofJob(job, 'Restored'), event: 'Restored', until })
  await publishCompleted(deps, job, object, until)
  return {
    ...{ Bucket: bucket, Key: key },
    ...(until !== null && { RestoreExpiryDate: new Date(until).toISOString() }),
  }
}

/** Reads the first and the last byte, to check the gateway's claim that it has a local copy. */
async function mustRead(
  { host }: DealDeps,
  context: Context,
  { bucket, key, size: content, storedSize: size = content, revision, versionId }: StoredObject,
): Promise<void> {
  const ref = versionId === undefined ? undefined : { revision }
  for (const position of new Set(size === 0 ? [] : [0, size - 1])) {
    const range = { first: position, last: position }
    const { object, download } = await context.store.openStored(bucket, key, range, ref).catch((error) => {
      // A caller who may restore an object need not be able to read it.
      if (!(error instanceof S3Error) || error.code !== 'AccessDenied') throw error
      return host.own.store.openStored(bucket, key, range, ref)
    })
    if (object.revision !== revision) {
      download.discard()
      throw replaced()
    }
    await download.consume(() => {})
  }
}

function replaced(): S3Error {
  return new S3Error('PreconditionFailed', { message: 'The object was replaced while it was being restored.' })
}

function versionOf({ bucket, key, stamp: revision }: RestoreInput): Version {
  return { bucket, key, revision }
}

/** Undoes the start of a restore. */
export async function giveUp(
  { copies }: DealDeps,
  { store }: Pick<Context, 'store'>,
  { bucket, key, revision }: Version,
): Promise<void> {
  await store.annotate(bucket, key, revision, (archive) => {
    const { restore, ...others } = archive ?? {}
    return restore && 'ongoing' in restore ? others : archive
  })
  await copies.forget({ bucket, key, revision })
}

async function publishCompleted(
  { host }: DealDeps,
  { job, context }: RunningJob<RestoreInput>,
  object: StoredObject,
  until: number | null,
): Promise<void> {
  await context.archive.moved('ObjectRestore:Completed', object, {
    origin: { requestId: job.id, accessKeyId: job.accessKeyId, remoteAddress: '' },
    time: host.now(),
    ...(until !== null && { until }),
  })
}

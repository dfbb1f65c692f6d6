import { setTimeout as sleep } from 'node:timers/promises'
import {
  type Context,
  type JobKind,
  pauseAfter,
  type RestoreOrder,
  type RunningJob,
  S3Error,
  type StoreEntry,
} from 'dealgate/plugin'
import pMap from 'p-map'
import { z } from 'zod'
import { type Failure, failure, keepSome } from '../deal-entries.js'
import type { DealDeps } from '../deps.js'
import type { Version } from '../records/deal-records.js'
import { bringingBack, patiently } from '../records/sequence.js'
import { RETRIEVE_BUCKET, type RetrieveBucketInput } from './inputs.js'

export const retrieveBucketResult = z.object({
  Bucket: z.string(),
  Prefix: z.string(),
  JobId: z.string(),
  Restored: z.number().int().describe('Objects that were restored.'),
  Present: z.number().int().describe('Objects with deals that had a local copy already.'),
  Failed: z.number().int(),
  Failures: z.array(failure).meta({ element: 'Failure' }).describe('The first hundred.'),
})
type RetrieveBucketResult = z.output<typeof retrieveBucketResult>

/** Entries per page of the listing; progress is recorded after each page. */
const PAGE = 100
/** Most restores at the same time. */
const MAX_CONCURRENCY = 8

interface Passed {
  /** Last key that is done. */
  readonly after: string
  readonly restored: number
  readonly present: number
  readonly failed: number
  /** Bytes of restored objects. */
  readonly bytes: number
  readonly failures: RetrieveBucketResult['Failures']
}

const NOTHING: Passed = { after: '', restored: 0, present: 0, failed: 0, bytes: 0, failures: [] }

type Listed = Extract<StoreEntry, { kind: 'object' }>

/**
 * Restores every object of a bucket whose bytes are only in deals, and ends when all are here. Memory does not grow
 * with the bucket. After a restart the job continues where it stopped.
 */
export function bucketRetrievals(deps: DealDeps): JobKind<RetrieveBucketInput, RetrieveBucketResult> {
  return {
    name: RETRIEVE_BUCKET,
    run: (job) =>
      run(deps, job).catch((error) => {
        throw patiently(job, error, deps.host.now(), bringingBack)
      }),
  }
}

async function run(deps: DealDeps, job: RunningJob<RetrieveBucketInput>): Promise<RetrieveBucketResult> {
  const records = deps.host.state.records<Passed>('deal-retrievals')
  const { bucket, prefix } = job.input
  let passed = (await records.get(job.job.id)) ?? NOTHING
  for (;;) {
    job.signal.throwIfAborted()
    const page = await job.context.store.list(bucket, { prefix, delimiter: '', after: passed.after, limit: PAGE })
    const objects = page.entries.filter((entry): entry is Listed => entry.kind === 'object')
    const last = objects.at(-1)
    if (last) {
      passed = { ...(await bringBack(job, objects, passed)), after: last.key }
      await records.set(job.job.id, passed)
    }
    if (!page.truncated || !last) break
  }
  await records.delete(job.job.id)
  const { restored, present, failed, failures } = passed
  return {
    ...{ Bucket: bucket, Prefix: prefix, JobId: job.job.id },
    ...{ Restored: restored, Present: present, Failed: failed, Failures: failures },
  }
}

async function bringBack(
  job: RunningJob<RetrieveBucketInput>,
  objects: readonly Listed[],
  before: Passed,
): Promise<Passed> {
  const { context } = job
  const states = objects.map((entry) => context.archive.presence(entry).state)
  const absent = objects.filter((_, i) => states[i] === 'cold' || states[i] === 'restoring')
  let passed = {
    ...before,
    present: before.present + states.filter((s) => s === 'archived' || s === 'restored').length,
  }
  const bytesTotal = before.bytes + absent.reduce((sum, { size }) => sum + size, 0)
  const report = () => {
    const succeeded = passed.restored + passed.present
    const total = before.restored + before.failed + absent.length + passed.present
    const tasks = { total, succeeded, failed: passed.failed }
    job.report({ phase: 'Restoring', tasks, bytes: { done: passed.bytes, total: bytesTotal } })
  }
  report()
  const over = new AbortController()
  const signal = AbortSignal.any([job.signal, over.signal])
  const bringing = pMap(
    absent,
    async ({ key, size }) => {
      const left = await bringBackOne(job, key, signal)
      passed = left
        ? { ...passed, failed: passed.failed + 1, failures: keepSome(passed.failures, left) }
        : { ...passed, restored: passed.restored + 1, bytes: passed.bytes + size }
      report()
    },
    { concurrency: MAX_CONCURRENCY },
  )
  // When one of them ends the run, the others are not awaited: the next run is.
  await bringing.finally(() => over.abort())
  return passed
}

async function bringBackOne(
  { context, input, job }: RunningJob<RetrieveBucketInput>,
  key: string,
  signal: AbortSignal,
): Promise<Failure | undefined> {
  const order: RestoreOrder = { days: input.days, tier: input.tier, description: '' }
  const { bucket } = input
  const revision = (await context.store.findToWrite(bucket, key))?.revision
  if (revision === undefined) return removed(key)
  try {
    await context.archive.restore(bucket, key, order, { id: job.id, remoteAddress: '' }, { revision })
  } catch (error) {
    if (!(error instanceof S3Error) || error.status >= 500) throw error
    if (error.code !== 'RestoreAlreadyInProgress') return { Key: key, Code: error.code, Message: error.message }
  }
  return arrival(context, { bucket, key, revision }, signal)
}

function removed(key: string): Failure {
  return { Key: key, Code: 'NoSuchKey', Message: 'The object was removed while it was being restored.' }
}

const LOOKS = { firstMs: 200, longestMs: 30_000 }

async function arrival(
  context: Context,
  { bucket, key, revision }: Version,
  signal: AbortSignal,
): Promise<Failure | undefined> {
  for (let looks = 1; ; looks++) {
    const object = await context.store.findRevision(bucket, key, revision)
    if (!object) return removed(key)
    const { state } = context.archive.presence(object)
    if (state === 'cold')
      return { Key: key, Code: 'InvalidObjectState', Message: 'No deal delivered the object. Its job says why.' }
    if (state !== 'restoring') return undefined
    await sleep(pauseAfter(looks, LOOKS), undefined, { signal, ref: false })
  }
}

import { isDeepStrictEqual } from 'node:util'
import {
  type JobKind,
  type Pace,
  type PluginHost,
  Retry,
  type RunningJob,
  S3Error,
  type Source,
  sourceOf,
} from 'dealgate/plugin'
import { type Column, columnsFor } from './columns.js'
import { baseOf, requireDestination } from './configuration.js'
import { FORMATS, SpooledFile } from './files.js'
import { announcements, fileKey, type ManifestFile, manifestKey, runName } from './manifest.js'
import { type InventoryRecords, nameOf, type Progress, type RunInput } from './records.js'
import { FIRST, type Marker, openRows, type ReadRows } from './rows.js'
import { requireColumns } from './visible.js'

export const CREATE_INVENTORY = 'inventory:CreateBucketInventory'

interface InventoryBounds {
  readonly fileRows: number
  /** Objects that all runs of the process list per second; 0 for no bound. */
  readonly rate: number
}

interface RunDeps {
  readonly host: PluginHost
  readonly records: InventoryRecords
  readonly bounds: Pick<InventoryBounds, 'fileRows'>
  /** The pace of all runs of the process, whatever file they write. */
  readonly pace: Pace
  /** Records that a run has failed for good, and tells who subscribes to it. */
  failed(input: RunInput, jobId: string, error: S3Error): Promise<void>
}

interface RunResult {
  readonly Bucket: string
  readonly Id: string
  readonly JobId: string
  readonly Manifest: string
  readonly Files: number
  readonly Rows: number
}

/** Bytes at which a file ends before it has all its rows. */
const MAX_FILE_BYTES = 256 * 1024 * 1024

const DAY_MS = 24 * 3600_000

/** Pause before another run of the same configuration is tried again, ms. */
const BUSY_MS = 5000

/** While the gateway does not answer, for at most a day. */
const BACKOFF = { firstMs: 5000, longestMs: 15 * 60_000 }

/**
 * Writes an inventory, file after file. What is stored is on record, so that a run that was interrupted goes on behind
 * its last file. The manifest follows when all files are there, and its checksum after it.
 */
export function inventoryRuns(deps: RunDeps): JobKind<RunInput, RunResult> {
  return {
    name: CREATE_INVENTORY,
    concurrency: 1,
    async admitAgain({ input: { bucket, configuration } }, _request, context) {
      // What is granted for this decision is for nothing else in the request.
      const own = context.as(context.caller)
      const columns = columnsFor(configuration, context.plugins.inventories)
      await openRows(own, bucket, configuration, columns)
      await requireColumns(own, columns, { bucket, key: configuration.filter ?? '' })
      await requireDestination(own, configuration.destination, baseOf(bucket, configuration))
    },
    async run(job) {
      const { records, failed } = deps
      try {
        return await runAlone(deps, job)
      } catch (error) {
        const thrown = patiently(job, error, deps.host.now())
        // A server that stops goes on with it.
        if (!(thrown instanceof Retry) && !job.signal.aborted && job.owned()) {
          await failed(job.input, job.job.id, thrown instanceof S3Error ? thrown : new S3Error('InternalError'))
          await records.progress.delete(job.job.id)
        }
        throw thrown
      }
    },
  }
}

/** A Retry while the gateway or the state does not answer, else the error: what is broken here stays so. */
function patiently({ putOff, signal }: RunningJob<RunInput>, error: unknown, now: number): unknown {
  if (signal.aborted || !(error instanceof S3Error) || error.status < 502) return error
  if (now - (putOff?.since ?? now) >= DAY_MS) return error
  return Retry.again({ putOff }, error.code, BACKOFF, error)
}

async function runAlone(deps: RunDeps, job: RunningJob<RunInput>): Promise<RunResult> {
  const { bucket, configuration } = job.input
  const lease = await deps.host.lease(nameOf(bucket, configuration.id))
  if (!lease) throw new Retry(BUSY_MS, 'Another inventory of this configuration is being written')
  try {
    const mayGoOn = () => {
      job.signal.throwIfAborted()
      if (!lease.held() || !job.owned()) throw new Retry(BUSY_MS, 'Another server may write this inventory')
    }
    return await write(deps, job, mayGoOn)
  } finally {
    await lease.release()
  }
}

async function write(deps: RunDeps, job: RunningJob<RunInput>, mayGoOn: () => void): Promise<RunResult> {
  const { records } = deps
  const { bucket, configuration } = job.input
  const { id } = job.job
  const columns = columnsFor(configuration, job.context.plugins.inventories)
  let passed = (await records.progress.get(id)) ?? (await begin(deps, job))
  // An empty bucket has one empty file.
  while (passed.next) {
    const read = await permitted(deps, job, columns)
    passed = await writeFile(deps, job, { columns, read, passed, from: passed.next, mayGoOn })
    await records.progress.set(id, passed)
  }
  await permitted(deps, job, columns)
  job.report({ phase: 'Announcing' })
  for (const { key, contentType, text } of announcements(bucket, configuration, passed, columns)) {
    mayGoOn()
    await store(job, key, contentType, sourceOf(Buffer.from(text)))
  }
  const manifest = manifestKey(bucket, configuration, passed.name)
  const counts = { files: passed.files.length, rows: passed.rows }
  await records.change(bucket, configuration.id, (record) => ({
    ...record,
    last: { jobId: id, ended: deps.host.now(), manifest, ...counts },
  }))
  await records.progress.delete(id)
  job.link('manifest', `/${configuration.destination.bucket}/${manifest}`)
  job.log.info({ bucket, inventory: configuration.id, ...counts }, 'an inventory is complete')
  return {
    ...{ Bucket: bucket, Id: configuration.id, JobId: id, Manifest: manifest },
    ...{ Files: counts.files, Rows: counts.rows },
  }
}

async function begin({ records, host }: RunDeps, { input, job }: RunningJob<RunInput>): Promise<Progress> {
  const { bucket, configuration } = input
  const started = host.now()
  const before = (await records.get(bucket, configuration.id))?.name
  const name = runName(started, before)
  if (name === before) throw new Retry(1000, 'An inventory of this configuration began in this second')
  const begun: Progress = { started, name, next: FIRST, files: [], rows: 0, bytes: 0 }
  await records.change(bucket, configuration.id, (record) => ({ ...record, name }))
  await records.progress.set(job.id, begun)
  return begun
}

/**
 * Decides again whether the inventory may be written, with the rights of now. Throws S3Error AccessDenied,
 * NoSuchBucket, and OperationAborted for a configuration that is no longer what it was.
 */
async function permitted(deps: RunDeps, job: RunningJob<RunInput>, columns: readonly Column[]): Promise<ReadRows> {
  const { bucket, configuration } = job.input
  const present = await deps.host.settings.confirmed(bucket, 'inventory')
  const same = present?.find(({ id }) => id === configuration.id)
  // A request that sets the same configuration again changes nothing.
  if (!isDeepStrictEqual(same && { ...same, since: configuration.since }, configuration))
    throw new S3Error('OperationAborted', {
      message: 'The configuration of the inventory was changed or removed while it was written.',
    })
  return openRows(job.context, bucket, configuration, columns)
}

interface Part {
  readonly columns: readonly Column[]
  readonly read: ReadRows
  readonly passed: Progress
  readonly from: Marker
  readonly mayGoOn: () => void
}

/** Writes the next file, and resolves with what has passed then. */
async function writeFile(deps: RunDeps, job: RunningJob<RunInput>, part: Part): Promise<Progress> {
  const { bucket, configuration } = job.input
  const { columns, passed, mayGoOn } = part
  const { format } = configuration.destination
  const key = fileKey(bucket, configuration, job.job.id, passed.files.length)
  const file = await SpooledFile.open(job.context.state, format, columns)
  try {
    const { rows, next } = await fill(deps, job, file, part)
    const { source, md5 } = await file.end()
    mayGoOn()
    const size = await store(job, key, FORMATS[format].contentType, source)
    const stored: ManifestFile = { key, size, MD5checksum: md5 }
    const { next: _, ...before } = passed
    return {
      ...before,
      ...(next && { next }),
      files: [...passed.files, stored],
      rows: passed.rows + rows,
      bytes: passed.bytes + size,
    }
  } finally {
    await file.discard()
  }
}

async function fill(
  { bounds, pace }: Pick<RunDeps, 'bounds' | 'pace'>,
  job: RunningJob<RunInput>,
  file: SpooledFile,
  { read, passed, from, mayGoOn }: Part,
): Promise<{ readonly rows: number; readonly next?: Marker }> {
  let rows = 0
  let next: Marker | undefined = from
  while (next && rows < bounds.fileRows && file.size < MAX_FILE_BYTES) {
    await pace.settled(job.signal)
    mayGoOn()
    const page = await read(next)
    pace.count(page.rows.length)
    await file.add(page.rows)
    rows += page.rows.length
    next = page.next
    const done = passed.rows + rows
    job.report({
      phase: 'Listing',
      tasks: { total: done, succeeded: done, failed: 0 },
      bytes: { done: passed.bytes, total: passed.bytes },
    })
  }
  return { rows, ...(next && { next }) }
}

/** Stores an object of the inventory with the rights of now. Resolves with its size, bytes. */
async function store(job: RunningJob<RunInput>, key: string, contentType: string, source: Source): Promise<number> {
  const { context, input } = job
  const { destination } = input.configuration
  const { bucket, encryption } = destination
  await requireDestination(context, destination, key)
  const acl = await context.acls.ofWrite({ bucket, key }, 'bucket-owner-full-control')
  const { size } = await context.store.put({
    ...{ bucket, key, source, acl, encryption },
    attributes: { contentType, headers: {}, metadata: {} },
    event: {
      name: 'ObjectCreated:Put',
      origin: { requestId: job.job.id, accessKeyId: job.job.accessKeyId, remoteAddress: '' },
    },
    maxBytes: context.limits.maxPutBytes,
  })
  return size
}

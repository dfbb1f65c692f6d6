import { createHash } from 'node:crypto'
import {
  type JobFailure,
  type Jobs,
  type PeriodicRun,
  type PeriodicWork,
  type PluginHost,
  S3Error,
} from 'dealgate/plugin'
import type { InventoryConfiguration } from './configuration.js'
import { type InventoryRecord, type InventoryRecords, nameOf, type RunInput } from './records.js'
import { CREATE_INVENTORY } from './run.js'

const DAY_MS = 24 * 3600_000

/** 1970-01-04 was a Sunday. */
const SUNDAY = 3

/**
 * When the next inventory was due, ms since 1970: the first one as soon as it is configured, and the others at midnight
 * UTC, weekly ones at that of Sunday. After a downtime, the latest stands for all that were missed. Undefined if none
 * is due.
 */
export function dueSince(
  { frequency, since }: Pick<InventoryConfiguration, 'frequency' | 'since'>,
  { scheduled }: Pick<InventoryRecord, 'scheduled'>,
  now: number,
): number | undefined {
  if (!scheduled) return since
  const latest = latestBoundary(frequency, now)
  return latest > scheduled.due ? latest : undefined
}

function latestBoundary(frequency: InventoryConfiguration['frequency'], now: number): number {
  const day = Math.floor(now / DAY_MS)
  return (frequency === 'Daily' ? day : day - ((day - SUNDAY) % 7)) * DAY_MS
}

/** When the next inventory is due after `now`, ms since 1970. */
export function nextDue(frequency: InventoryConfiguration['frequency'], now: number): number {
  return latestBoundary(frequency, now) + (frequency === 'Daily' ? 1 : 7) * DAY_MS
}

interface SchedulerDeps {
  readonly host: PluginHost
  readonly records: InventoryRecords
  readonly everySeconds: number
  failed(input: RunInput, jobId: string, error: JobFailure): Promise<void>
}

/**
 * Begins inventories when they are due. Of the servers that share a state, one runs it at a time; the job of an
 * inventory has a token that is made of its due time, so that none begins twice.
 */
export class InventoryScheduler {
  readonly #deps: SchedulerDeps

  constructor(deps: SchedulerDeps) {
    this.#deps = deps
  }

  get work(): PeriodicWork {
    return {
      name: 'schedules',
      everySeconds: this.#deps.everySeconds,
      atStart: true,
      run: (current) => this.#lookAtAll(current),
    }
  }

  async #lookAtAll({ mayGoOn }: PeriodicRun): Promise<void> {
    const { host, records } = this.#deps
    const seen = new Set<string>()
    for await (const [bucket, listed] of host.settings.buckets('inventory')) {
      for (const { id } of listed) seen.add(nameOf(bucket, id))
      if (!mayGoOn()) return
      await this.#lookAt(bucket).catch((err) => {
        host.log.warn({ err, bucket }, 'the inventories of a bucket could not be looked at; retrying in the next run')
      })
    }
    for await (const record of records.all()) {
      if (!mayGoOn()) return
      if (!seen.has(nameOf(record.bucket, record.id))) await records.delete(record)
    }
  }

  async #lookAt(bucket: string): Promise<void> {
    const { host, records } = this.#deps
    for (const configuration of (await host.settings.latest(bucket, 'inventory')) ?? []) {
      const { id, enabled } = configuration
      const record = (await records.get(bucket, id)) ?? { bucket, id }
      const isRunning = await this.#settle({ bucket, configuration }, record)
      const due = dueSince(configuration, record, host.now())
      if (enabled && !isRunning && due !== undefined) await this.#begin({ bucket, configuration }, due)
    }
  }

  /** Resolves true if the latest inventory of the schedule goes on. Records a failure that its run has not seen. */
  async #settle(input: RunInput, { scheduled, last }: InventoryRecord): Promise<boolean> {
    if (!scheduled || scheduled.jobId === last?.jobId) return false
    const job = await this.#jobs.get(scheduled.jobId)
    if (!job || job.status === 'Complete') return false
    if (job.status !== 'Failed' && job.status !== 'Cancelled') return true
    const failure = job.failure ?? new S3Error('OperationAborted', { message: 'The job was cancelled.' })
    await this.#deps.failed(input, job.id, failure)
    return false
  }

  async #begin(input: RunInput, due: number): Promise<void> {
    const { host, records } = this.#deps
    const { bucket, configuration } = input
    const { id, by, since } = configuration
    const token = createHash('sha256').update(`inventory/${bucket}/${id}/${since}/${due}`).digest('hex')
    const order = { resource: `/${bucket}`, accessKeyId: by, token, requestHash: token }
    const job = await this.#jobs.create({ ...order, kind: CREATE_INVENTORY, input })
    await records.change(bucket, id, (record) => ({ ...record, scheduled: { due, jobId: job.id } }))
    host.log.info({ bucket, inventory: id, due: new Date(due), job: job.id }, 'a scheduled inventory begins')
  }

  get #jobs(): Jobs {
    return this.#deps.host.own.jobs
  }
}

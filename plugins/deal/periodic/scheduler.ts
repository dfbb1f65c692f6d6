import { createHash } from 'node:crypto'
import { type Job, type PeriodicRun, type PeriodicWork, S3Error } from 'dealgate/plugin'
import type { DealConfiguration } from '../configuration.js'
import type { DealDeps } from '../deps.js'
import {
  BUCKET_DEAL,
  type BucketDealInput,
  OFFLINE_DEAL,
  type OfflineDealInput,
  RUN_SCHEDULE,
  type RunScheduleInput,
} from '../jobs/inputs.js'
import { readOfflineTerms } from '../terms/offline-terms.js'
import type { RunScheduleResult } from './run-schedule.js'
import type { ScheduleRecord } from './schedule-records.js'
import { type BackupSchedule, latestDue } from './schedules.js'

/** Terms of the configuration for offline deals. */
type Offline = DealConfiguration['OfflineTerms']

/**
 * Begins the backups of schedules when they are due. Of the servers that share a state, one runs it at a time; the job
 * of a backup has a token that is made of its due time, so that none begins twice.
 */
export class Scheduler {
  readonly #deps: DealDeps

  constructor(deps: DealDeps) {
    this.#deps = deps
  }

  get work(): PeriodicWork {
    return {
      name: 'schedules',
      everySeconds: this.#deps.options.scheduleIntervalSeconds,
      atStart: true,
      run: (current) => this.#lookAtAll(current),
    }
  }

  async #lookAtAll({ mayGoOn }: PeriodicRun): Promise<void> {
    const { host, schedules } = this.#deps
    const seen = new Set<string>()
    for await (const [bucket, { Schedules }] of host.settings.buckets('deal')) {
      if (!Schedules?.length) continue
      if (!mayGoOn()) return
      seen.add(bucket)
      await this.#lookAt(bucket).catch((err) => {
        host.log.warn({ err, bucket }, 'the schedules of a bucket could not be looked at; retrying in the next run')
      })
    }
    for await (const [key, { bucket }] of schedules.all()) if (!seen.has(bucket)) await schedules.delete(key)
  }

  async #lookAt(bucket: string): Promise<void> {
    const { host, schedules } = this.#deps
    const configuration = await host.settings.latest(bucket, 'deal')
    for (const schedule of configuration?.Schedules ?? []) {
      const record = await schedules.observe(bucket, schedule, host.now())
      await this.#settle(record)
      await this.#beginIfDue(schedule, record, configuration?.OfflineTerms)
    }
  }

  async #settle(record: ScheduleRecord): Promise<void> {
    const { last } = record
    if (!last || last.settled) return
    const job = last.jobId === undefined ? undefined : await this.#deps.jobs.get(last.jobId)
    if (job && !['Complete', 'Failed', 'Cancelled'].includes(job.status)) return
    await this.#deps.schedules.settled(record, job?.status === 'Complete' && isWhole(job))
  }

  /** After a downtime, the latest time that was missed stands for all. So does it while an earlier backup runs. */
  async #beginIfDue(schedule: BackupSchedule, record: ScheduleRecord, offline: Offline): Promise<void> {
    const { host, schedules } = this.#deps
    const { bucket, id, since, last } = record
    const due = latestDue(schedule, host.now())
    if (due === undefined || since === undefined || due <= since || (last && due <= last.due)) return
    const running = last?.jobId === undefined ? undefined : await this.#deps.jobs.get(last.jobId)
    if (running?.status === 'New' || running?.status === 'Active') return
    try {
      // The server pays from its own account, and only for its own buckets.
      await host.own.checks.requireOwner(bucket)
      const { id: jobId } = await this.#begin(bucket, schedule, due, offline)
      await schedules.begun(record, { due, jobId })
      host.log.info({ bucket, schedule: id, due: new Date(due), job: jobId }, 'a scheduled backup begins')
    } catch (err) {
      if (!(err instanceof S3Error) || err.status >= 500) throw err
      await schedules.begun(record, { due })
      host.log.warn({ err, bucket, schedule: id, due: new Date(due) }, 'a scheduled backup was refused')
    }
  }

  async #begin(bucket: string, schedule: BackupSchedule, due: number, offline: Offline): Promise<Job> {
    const { jobs, host } = this.#deps
    const { Id, Filter, Kind } = schedule
    const token = createHash('sha256').update(`schedule/${bucket}/${Id}/${due}`).digest('hex')
    const order = { resource: `/${bucket}`, accessKeyId: '', token, requestHash: token }
    const generation = { schedule: Id, due }
    if (Kind === 'offline') {
      const terms = readOfflineTerms([offline], bucket)
      const prefix = Filter?.Prefix
      const input: OfflineDealInput = { bucket, ...(prefix && { prefix }), terms, cause: 'schedule', generation }
      return jobs.create({ ...order, kind: OFFLINE_DEAL, input })
    }
    if (Filter) {
      const { Prefix: prefix = '', Tags: tags = [] } = Filter
      const input: RunScheduleInput = { bucket, prefix, tags, generation }
      return jobs.create({ ...order, kind: RUN_SCHEDULE, input })
    }
    const agreed = await this.#deps.termsFor(host.own, bucket, {})
    const input: BucketDealInput = { bucket, ...agreed, cause: 'schedule', generation }
    return jobs.create({ ...order, kind: BUCKET_DEAL, input })
  }
}

/** False for a backup that lacks objects. */
function isWhole({ operation, result }: Job): boolean {
  return operation !== RUN_SCHEDULE || (result as RunScheduleResult).Failed === 0
}

import { createHash } from 'node:crypto'
import { Cron } from 'croner'
import { type Job, type PeriodicRun, type PeriodicWork, S3Error } from 'dealgate'
import { z } from 'zod'
import type { DealConfiguration } from '../configuration.js'
import type { DealDeps } from '../deps.js'
import {
  BUCKET_DEAL,
  type BucketDealInput,
  OFFLINE_DEAL,
  type OfflineDealInput,
  RUN_SCHEDULE,
  type RunScheduleInput,
} from '../records/attempts.js'
import { readOfflineTerms } from '../terms/offline-terms.js'
import type { RunScheduleResult } from './run-schedule.js'
import type { ScheduleRecord } from './schedule-records.js'

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

  /** The periodic work that runs the scheduler. */
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

type Times = Pick<BackupSchedule, 'Cron' | 'TimeZone'>

/**
 * The reason why the times of a schedule are not valid, in a sentence; undefined when they are.
 * @param now ms since 1970
 */
export function whyInvalid(times: Times, now: number): string | undefined {
  if (!/^\S+( \S+){4}$/.test(times.Cron))
    return 'Cron must have five fields with single spaces between them: minute, hour, day of the month, month, day of the week.'
  if (!isTimeZone(times.TimeZone)) return `${times.TimeZone} is not a time zone, such as Europe/Berlin.`
  try {
    return cronOf(times).nextRun(new Date(now)) === null ? `${times.Cron} is never due.` : undefined
  } catch (error) {
    // The parser's own words name the field.
    return `${times.Cron} is not a cron expression: ${error instanceof Error ? error.message : String(error)}`
  }
}

/**
 * The latest time at which a backup was due, ms since 1970, `now` included; undefined when there was none. Where a time
 * zone skips a time in spring, the backup is due when the clock goes on; a time that comes twice in autumn counts once
 * unless the expression has several hours.
 */
export function latestDue(times: Times, now: number): number | undefined {
  return cronOf(times)
    .previousRuns(1, new Date(now + 1))[0]
    ?.getTime()
}

function cronOf({ Cron: pattern, TimeZone: timezone = 'UTC' }: Times): Cron {
  return new Cron(pattern, { timezone, mode: '5-part', paused: true })
}

function isTimeZone(name = 'UTC'): boolean {
  try {
    // Offsets such as +02:00 are accepted by some versions of Node only.
    return /^[A-Za-z]/.test(name) && new Intl.DateTimeFormat('en', { timeZone: name }) !== undefined
  } catch {
    return false
  }
}

/** Most schedules of a bucket. */
const MAX_SCHEDULES = 20

const tag = z.strictObject({ Key: z.string().min(1).max(128), Value: z.string().max(256) })

/** A schedule of recurring backups, as the deal configuration of a bucket holds it. */
const backupSchedule = z.strictObject({
  Id: z
    .string()
    .regex(/^[A-Za-z0-9._-]{1,64}$/)
    .describe('Unique within the bucket: up to 64 letters, digits and `. _ -`.'),
  Cron: z
    .string()
    .max(100)
    .describe('When backups are due: minute, hour, day of the month, month and day of the week, as in `30 3 * * SUN`.'),
  TimeZone: z.string().max(64).optional().describe('Time zone of `Cron`, as in `Europe/Berlin`. Default: UTC.'),
  Kind: z
    .enum(['online', 'offline'])
    .optional()
    .describe(
      'How backups are made: `online`, by deals of the gateway, or `offline`, by tasks on the task platform. Default: online.',
    ),
  Filter: z
    .strictObject({
      Prefix: z.string().max(1024).optional().describe('Only objects whose keys begin with this text.'),
      Tags: z.array(tag).max(10).optional().describe('Only objects that have all of these tags.'),
    })
    .optional()
    .describe('Backs up these objects; online, each by a deal of its own. Default: one deal for the whole bucket.'),
  KeepGenerations: z
    .number()
    .int()
    .min(1)
    .max(1000)
    .optional()
    .describe(
      'After so many newer complete backups, the deals of a backup are no longer monitored or renewed. Default: always.',
    ),
  Enabled: z.boolean().optional().describe('Default: true. Backups that are due while it is false are left out.'),
})

/** Plain JSON. */
export type BackupSchedule = z.output<typeof backupSchedule>

export const backupSchedules = z
  .array(backupSchedule)
  .max(MAX_SCHEDULES)
  .optional()
  .describe('Recurring backups of the bucket.')

/** Checks what the schema cannot express. Throws InvalidArgument. */
export function checkSchedules(schedules: readonly BackupSchedule[], now: number): void {
  const ids = schedules.map(({ Id }) => Id)
  const twice = ids.find((id, i) => ids.indexOf(id) !== i)
  if (twice !== undefined) throw invalid(`There are two schedules with the Id ${twice}.`)
  for (const schedule of schedules) {
    const why = whyInvalid(schedule, now)
    if (why !== undefined) throw invalid(`The schedule ${schedule.Id} is not valid: ${why}`)
    const { Prefix = '', Tags = [] } = schedule.Filter ?? {}
    if (schedule.Filter && Prefix === '' && Tags.length === 0)
      throw invalid(`The Filter of the schedule ${schedule.Id} is empty. Leave it out to back up the whole bucket.`)
    if (schedule.Kind === 'offline' && Tags.length > 0)
      throw invalid(`The schedule ${schedule.Id} is offline: its Filter takes a Prefix, and no Tags.`)
    if (new Set(Tags.map(({ Key }) => Key)).size < Tags.length)
      throw invalid(`The Filter of the schedule ${schedule.Id} has two tags with the same key.`)
  }
}

function invalid(message: string): S3Error {
  return new S3Error('InvalidArgument', { message, fields: { ArgumentName: 'Schedules' } })
}

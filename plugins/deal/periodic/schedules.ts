import { Cron } from 'croner'
import { S3Error } from 'dealgate/plugin'
import { z } from 'zod'

type Times = Pick<BackupSchedule, 'Cron' | 'TimeZone'>

/**
 * The reason why the times of a schedule are not valid, in a sentence; undefined when they are.
 * @param now ms since 1970
 */
function whyInvalid(times: Times, now: number): string | undefined {
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

/** When the next backup is due, ms since 1970. */
export function nextDue(times: Times, now: number): number | undefined {
  return cronOf(times).nextRun(new Date(now))?.getTime()
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

import { Cron } from 'croner'
import type { BackupSchedule } from './document.js'

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

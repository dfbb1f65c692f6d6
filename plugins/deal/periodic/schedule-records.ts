import { createHash } from 'node:crypto'
import type { PluginState, Records } from 'dealgate/plugin'
import type { BackupSchedule } from './schedules.js'

/** Most complete backups that are remembered; a configuration keeps at most as many generations. */
const MAX_COMPLETE = 1000

/** What is known of a schedule. All times in ms since 1970. */
export interface ScheduleRecord {
  readonly bucket: string
  readonly id: string
  /** Its times, as text. */
  readonly times: string
  /** Backups that were due until then are left out. Absent while the schedule is disabled. */
  readonly since?: number
  /** The latest backup. */
  readonly last?: {
    readonly due: number
    /** Absent when no job could be made. */
    readonly jobId?: string
    /** The outcome of its job is known. */
    readonly settled?: true
  }
  /** When the complete backups were due, newest first. */
  readonly complete: readonly number[]
}

/** What is known of all schedules. All methods throw ServiceUnavailable. */
export class ScheduleRecords {
  readonly #records: Records<ScheduleRecord>

  constructor(state: Pick<PluginState, 'records'>) {
    this.#records = state.records('deal-schedules')
  }

  get(bucket: string, id: string): Promise<ScheduleRecord | undefined> {
    return this.#records.get(keyOf(bucket, id))
  }

  all(): AsyncIterable<[key: string, record: ScheduleRecord]> {
    return this.#records.entries()
  }

  /**
   * The record of a schedule as it is configured. A schedule that is new, has other times or was disabled counts from
   * `now`.
   */
  async observe(bucket: string, schedule: BackupSchedule, now: number): Promise<ScheduleRecord> {
    const { Id: id, Cron, TimeZone = 'UTC', Enabled = true } = schedule
    const times = `${Cron} ${TimeZone}`
    const known = await this.get(bucket, id)
    if (known?.times === times && (known.since !== undefined) === Enabled) return known
    const record = (present: ScheduleRecord | undefined): ScheduleRecord => {
      const { since, ...others } = present ?? { complete: [] }
      const from = present?.times === times && since !== undefined ? since : now
      return { ...others, bucket, id, times, ...(Enabled && { since: from }) }
    }
    return (await this.#records.change(keyOf(bucket, id), record)) ?? record(known)
  }

  async begun({ bucket, id }: ScheduleRecord, last: NonNullable<ScheduleRecord['last']>): Promise<void> {
    await this.#records.change(keyOf(bucket, id), (present) => present && { ...present, last })
  }

  async settled({ bucket, id, last }: ScheduleRecord, complete: boolean): Promise<void> {
    await this.#records.change(keyOf(bucket, id), (present) => {
      if (!last || present?.last?.due !== last.due) return present
      const others = present.complete.filter((due) => due !== last.due)
      return {
        ...present,
        last: { ...last, settled: true },
        complete: complete ? [last.due, ...others].slice(0, MAX_COMPLETE) : others,
      }
    })
  }

  delete(key: string): Promise<void> {
    return this.#records.delete(key)
  }
}

/** A bucket name holds no `/`. */
function keyOf(bucket: string, id: string): string {
  return createHash('sha256').update(`${bucket}/${id}`).digest('base64url')
}

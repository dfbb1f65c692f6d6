import { type Context, defineCall } from 'dealgate/plugin'
import { z } from 'zod'
import { wholeSeconds } from '../deal-document.js'
import { visibility } from '../deal-entries.js'
import type { DealDeps } from '../deps.js'
import { type BackupSchedule, nextDue } from '../periodic/schedules.js'
import { SOURCE } from '../subject.js'

/** Most complete backups that an answer names. */
const MAX_COMPLETE = 20

const schedule = z.object({
  Bucket: z.string(),
  Id: z.string(),
  Cron: z.string(),
  TimeZone: z.string(),
  Kind: z.enum(['online', 'offline']),
  Prefix: z.string().optional().describe('Of the objects that it backs up.'),
  KeepGenerations: z.int().optional(),
  Enabled: z.boolean(),
  NextDue: z.string().optional().describe('RFC 3339; absent for a schedule that is disabled.'),
  LastDue: z.string().optional().describe('When the latest backup was due, RFC 3339; absent for none.'),
  LastJobId: z.string().optional().describe('Absent if the backup was refused.'),
  LastStatus: z
    .string()
    .optional()
    .describe('That of the job; `Incomplete` when it lacks objects, `Refused` without a job.'),
  Complete: z
    .array(z.string())
    .meta({ element: 'Due' })
    .describe('When the last complete backups were due, newest first, RFC 3339.'),
})

type Schedule = z.output<typeof schedule>

export function listSchedules(deps: DealDeps) {
  return defineCall({
    name: 'ListSchedules',
    source: `${SOURCE}#schedules`,
    summary: 'Lists the schedules of all buckets that the caller may read, with the next backup and the last one.',
    access: 'signed',
    on: { method: 'GET', resource: 'service', path: '/-/deal/v1/schedules' },
    query: z.strictObject({
      bucket: z.string().max(63).optional().describe('Lists the schedules of this bucket only.'),
    }),
    pages: 'Schedules',
    result: z.object({ Schedules: z.array(schedule).meta({ element: 'Schedule' }) }),
    ownRules: true,
    answer: async ({ query }, context) => ({ Schedules: schedulesFor(deps, context, query.bucket) }),
  })
}

async function* schedulesFor(deps: DealDeps, context: Context, only: string | undefined): AsyncIterable<Schedule> {
  const maySee = visibility(context)
  for await (const [bucket, { Schedules = [] }] of deps.host.settings.buckets('deal')) {
    if (Schedules.length === 0 || (only !== undefined && bucket !== only) || !(await maySee({ bucket }))) continue
    for (const one of Schedules) yield await stateOf(deps, bucket, one)
  }
}

async function stateOf(deps: DealDeps, bucket: string, backup: BackupSchedule): Promise<Schedule> {
  const { Id, Cron, TimeZone = 'UTC', Kind = 'online', Filter, KeepGenerations, Enabled = true } = backup
  const { last, complete = [] } = (await deps.schedules.get(bucket, Id)) ?? {}
  const next = Enabled ? nextDue(backup, deps.host.now()) : undefined
  const job = last?.jobId === undefined ? undefined : await deps.jobs.get(last.jobId)
  const isWhole = last !== undefined && complete.includes(last.due)
  return {
    ...{ Bucket: bucket, Id, Cron, TimeZone, Kind, Enabled },
    ...(Filter?.Prefix !== undefined && { Prefix: Filter.Prefix }),
    ...(KeepGenerations !== undefined && { KeepGenerations }),
    ...(next !== undefined && { NextDue: wholeSeconds(next) }),
    ...(last && { LastDue: wholeSeconds(last.due), LastStatus: statusOf(last, job?.status, isWhole) }),
    ...(last?.jobId !== undefined && { LastJobId: last.jobId }),
    Complete: complete.slice(0, MAX_COMPLETE).map(wholeSeconds),
  }
}

/** The job is removed some days after its end; what was complete is kept longer. */
function statusOf(last: { jobId?: string; settled?: true }, status: string | undefined, isWhole: boolean): string {
  if (isWhole) return 'Complete'
  if (last.jobId === undefined) return 'Refused'
  if (status === undefined) return 'Incomplete'
  return status === 'Complete' && last.settled ? 'Incomplete' : status
}

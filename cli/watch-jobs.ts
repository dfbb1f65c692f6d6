import { z } from 'zod'
import type { Config } from './config/config.js'
import type { Endpoint } from './endpoint-call.js'
import { partText } from './progress.js'
import { pagesOf, type Row, secondsOf, showTable, type WatchFlags } from './watch.js'

const count = z.number().catch(0)

const Job = z.object({
  JobId: z.string(),
  Operation: z.string(),
  Status: z.string(),
  Phase: z.string().catch(''),
  Resource: z.string(),
  ProgressSummary: z
    .object({
      TotalNumberOfTasks: count,
      NumberOfTasksSucceeded: count,
      NumberOfTasksFailed: count,
      Bytes: z.object({ Done: count, Total: count }),
    })
    .optional(),
  CreationTime: z.string().catch(''),
  LastUpdate: z.string().catch(''),
  FailureReasons: z.array(z.object({ FailureCode: z.string(), FailureReason: z.string() })).catch([]),
})
export type ShownJob = z.output<typeof Job>

const FAILED = ['Failed', 'Cancelled']

interface JobsFlags extends WatchFlags {
  readonly ofPlugin?: string
}

/** `dealgate jobs`: the newest jobs of the running server, with their progress. */
export async function showJobs(config: Config, own: JobsFlags): Promise<void> {
  await showTable(config, own, async (endpoint, limit) => {
    const jobs = await jobsOf(endpoint, limit, own.ofPlugin)
    return {
      head: ['JOB', 'OPERATION', 'RESOURCE', 'STATUS', 'PROGRESS', 'UPDATED'],
      rows: jobs.map(({ shown }) => rowOf(shown)),
      document: { Jobs: jobs.map(({ document }) => document) },
    }
  })
}

interface ListedJob {
  readonly shown: ShownJob
  /** The document that the server answered. */
  readonly document: unknown
}

/** Jobs of the server, newest first. @param wanted false for those that do not count */
export async function jobsOf(
  endpoint: Endpoint,
  limit: number,
  plugin: string | undefined,
  wanted: (job: ShownJob) => boolean = () => true,
): Promise<ListedJob[]> {
  const found: ListedJob[] = []
  for await (const document of pagesOf(endpoint, '/-/jobs/v1', 'Jobs', plugin === undefined ? {} : { plugin })) {
    const shown = Job.parse(document)
    if (wanted(shown)) found.push({ shown, document })
    if (found.length === limit) break
  }
  return found
}

export function outcomeOf({ Status }: ShownJob): Row['outcome'] {
  if (Status === 'Complete') return 'done'
  return FAILED.includes(Status) ? 'failed' : 'pending'
}

function rowOf(job: ShownJob): Row {
  const { JobId, Operation, Resource, Status, LastUpdate } = job
  return {
    id: JobId,
    outcome: outcomeOf(job),
    cells: [JobId, Operation, Resource, Status, progressOf(job), secondsOf(LastUpdate)],
  }
}

/** Phase and part of a running job, or why it has failed. */
export function progressOf(job: ShownJob): string {
  const [failure] = job.FailureReasons
  if (failure) return `${failure.FailureCode}: ${failure.FailureReason}`
  const { Phase, ProgressSummary: summary } = job
  if (outcomeOf(job) !== 'pending' || summary === undefined) return ''
  const { TotalNumberOfTasks: total, NumberOfTasksSucceeded: succeeded, NumberOfTasksFailed: failed, Bytes } = summary
  const parts = [
    Phase,
    ...(total > 0 ? [`${succeeded + failed} of ${total}`] : []),
    ...(failed > 0 ? [`${failed} failed`] : []),
    ...(Bytes.Total > 0 ? [partText(Bytes.Done, Bytes.Total)] : []),
  ]
  return parts.filter((part) => part !== '').join(', ')
}

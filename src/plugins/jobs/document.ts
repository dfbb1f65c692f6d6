import { z } from 'zod'
import type { Job, JobStatus } from '../../api/jobs.js'
import type { JobStore } from './job-store.js'
import { timeOfUlid } from './record.js'

export const jobStatuses = ['New', 'Active', 'Unknown', 'Cancelling', 'Complete', 'Failed', 'Cancelled'] as const

const count = z.number().int().min(0)

/**
 * A job as clients see it, in the terms of S3 Batch Operations:
 * https://docs.aws.amazon.com/AmazonS3/latest/API/API_control_JobDescriptor.html
 */
export const jobDocument = z.object({
  JobId: z.string(),
  Operation: z.string().describe('The call that it carries out: `<plugin>:<name>`.'),
  Status: z.enum(jobStatuses).describe('Unknown: the job has sent a request whose outcome is not known yet.'),
  Phase: z.string().describe('Current phase of the work.'),
  Resource: z.string().describe('The bucket or object that the job works on.'),
  ProgressSummary: z.object({
    TotalNumberOfTasks: count,
    NumberOfTasksSucceeded: count,
    NumberOfTasksFailed: count,
    Bytes: z.object({ Done: count, Total: count }),
  }),
  CreationTime: z.string(),
  LastUpdate: z.string(),
  ClientToken: z.string().optional(),
  FailureReasons: z
    .array(
      z.object({
        FailureCode: z.string(),
        FailureReason: z.string(),
        Details: z.record(z.string(), z.unknown()).optional(),
      }),
    )
    .meta({ element: 'member' }),
  Result: z.unknown().describe('Result of a complete job; null before.'),
  Links: z.record(z.string(), z.string()),
})

type JobDocument = z.output<typeof jobDocument>

export function documentOf(job: Job): JobDocument {
  const { tasks, bytes, phase } = job.progress
  return {
    JobId: job.id,
    Operation: job.operation,
    Status: job.status,
    Phase: phase,
    Resource: job.resource,
    ProgressSummary: {
      TotalNumberOfTasks: tasks.total,
      NumberOfTasksSucceeded: tasks.succeeded,
      NumberOfTasksFailed: tasks.failed,
      Bytes: { Done: bytes.done, Total: bytes.total },
    },
    CreationTime: new Date(job.created).toISOString(),
    LastUpdate: new Date(job.updated).toISOString(),
    ...(job.token !== undefined && { ClientToken: job.token }),
    FailureReasons: job.failure ? [failureDocument(job.failure)] : [],
    Result: job.result ?? null,
    Links: { ...job.links },
  }
}

function failureDocument({ code, message, fields }: NonNullable<Job['failure']>) {
  return { FailureCode: code, FailureReason: message, ...(fields && { Details: { ...fields } }) }
}

export interface JobsOverview {
  readonly counts: readonly { readonly kind: string; readonly status: JobStatus | 'Open'; readonly count: number }[]
  /** The oldest job of each kind that has not ended. */
  readonly oldest: readonly { readonly kind: string; readonly ageMs: number }[]
}

/** Most records of jobs that are read; further jobs that have not ended are `Open`. */
const MAX_READ = 500

/** Counts the jobs. The index tells how jobs have ended; the state of the others is in their records. */
export async function jobsOverview(store: JobStore, now: number): Promise<JobsOverview> {
  const counts = new Map<string, Map<JobStatus | 'Open', number>>()
  const oldest = new Map<string, number>()
  let read = 0
  for (const [id, { kind, end }] of store.index.oldestFirst()) {
    let status: JobStatus | 'Open' = end?.status ?? 'Open'
    if (!end) {
      if (!oldest.has(kind)) oldest.set(kind, now - timeOfUlid(id.slice(2)))
      if (read++ < MAX_READ) status = (await store.read(id))?.job.status ?? 'Open'
    }
    const ofKind = counts.get(kind) ?? new Map()
    counts.set(kind, ofKind.set(status, (ofKind.get(status) ?? 0) + 1))
  }
  return {
    counts: [...counts].flatMap(([kind, statuses]) =>
      [...statuses].map(([status, count]) => ({ kind, status, count })),
    ),
    oldest: [...oldest].map(([kind, ageMs]) => ({ kind, ageMs: Math.max(0, ageMs) })),
  }
}

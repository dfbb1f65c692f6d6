import { z } from 'zod'
import type { Job } from './job.js'

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

export type JobDocument = z.output<typeof jobDocument>

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

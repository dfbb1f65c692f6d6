import { createHash } from 'node:crypto'
import { type Job, serviceTokenOf } from 'dealgate'
import { z } from 'zod'
import type { TaskTerms } from './terms.js'

export const CREATE_TASK = 'task:CreateTask'

/** Input of the job. Plain JSON. */
export interface TaskInput {
  readonly terms: TaskTerms
  /** The CSV. Absent for a task without, and for one whose CSV is an object. */
  readonly csv?: string
  readonly fileName?: string
  /** The CSV is this object. */
  readonly manifest?: { readonly bucket: string; readonly key: string; readonly stamp: string }
  /** The token that the request carried, sealed. */
  readonly bearer?: string
}

export const createdTask = z.object({
  JobId: z.string(),
  TaskName: z.string(),
  TaskUuid: z.string().optional(),
  TaskId: z.number().int().optional().describe('Where the platform names a task by its number alone.'),
  Filename: z.string().describe('Name of the CSV on the platform.'),
  Bucket: z.string().optional().describe('The bucket that the CSV came from.'),
  Message: z.string(),
})
export type CreatedTask = z.output<typeof createdTask>

/** What the token in a job was sealed for. */
export const BEARER_PURPOSE = 'task:job-bearer'

/**
 * UUID for the task of a job: the same for each of its requests, and for a job with the same client token that is made
 * after the record of the first was lost.
 * https://www.rfc-editor.org/rfc/rfc9562#name-uuid-version-8
 */
export function uuidOf(job: Pick<Job, 'id' | 'accessKeyId' | 'token'>): string {
  const bytes = createHash('sha256')
    .update(`dealgate:task:${serviceTokenOf(job)}`)
    .digest()
    .subarray(0, 16)
  bytes[6] = ((bytes[6] as number) & 0x0f) | 0x80
  bytes[8] = ((bytes[8] as number) & 0x3f) | 0x80
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
}

import { type Context, defineCall, PageOf, S3Error, type S3Request } from 'dealgate/plugin'
import { z } from 'zod'
import type { MadeTask } from '../create/made-tasks.js'
import type { TaskDeps } from '../deps.js'
import { task, taskDetail, withUuid } from '../documents.js'
import { platform } from '../platform.js'
import { SOURCE, send } from './send.js'

const bucketTask = z.object({
  JobId: z.string().describe('Of the job that created it.'),
  TaskUuid: z.string().optional(),
  TaskName: z.string(),
  Status: z.string().describe('Of the task now; Unseen if the platform does not show it to the caller.'),
  Task: task.shown.optional(),
  BidCount: z.number().int().optional(),
  TotalDealCount: z.number().int().optional(),
  DealCompleteRate: z.string().optional(),
})

/** Most tasks on a page, each of which the platform is asked for. */
const MAX_PAGE = 20

export function listBucketTasks(deps: TaskDeps) {
  return defineCall({
    name: 'ListBucketTasks',
    source: SOURCE,
    summary: 'Lists the tasks that were created from a bucket through this server, newest first, each as it is now.',
    access: 'owner',
    on: { method: 'GET', resource: 'bucket', subresource: 'x-task' },
    result: z.object({ Bucket: z.string(), Tasks: z.array(bucketTask).meta({ element: 'Task' }) }),
    pages: 'Tasks',
    async answer({ request, page }, context) {
      const { bucket } = request
      context.checks.requireWholeBucket(bucket, 'read')
      if (!(await context.gateway.bucketExists(bucket)))
        throw new S3Error('NoSuchBucket', { fields: { BucketName: bucket } })
      const made = await deps.made.ofBucket(bucket)
      const start = page.from !== undefined && /^\d{1,9}$/.test(page.from) ? Number(page.from) : 0
      const end = start + Math.min(page.limit, MAX_PAGE)
      const items = await Promise.all(made.slice(start, end).map((one) => live(deps, context, request, one)))
      return { Bucket: bucket, Tasks: new PageOf(items, end < made.length ? String(end) : undefined) }
    },
  })
}

async function live(
  deps: TaskDeps,
  context: Context,
  request: Pick<S3Request, 'headers' | 'signal'>,
  { jobId, uuid, taskId, name }: MadeTask,
): Promise<z.output<typeof bucketTask>> {
  const known = { JobId: jobId, ...(uuid !== undefined && { TaskUuid: uuid }), TaskName: name }
  const id = uuid ?? taskId?.toString()
  if (id === undefined) return { ...known, Status: 'Unseen' }
  try {
    const call = { method: 'GET', path: ['tasks', id], query: { limit: 1 } } as const
    const missing = () => new S3Error('NoSuchTask')
    const answer = await send(deps, context, request, call, { need: 'optional', missing })
    const { Task, BidCount, TotalDealCount, DealCompleteRate } = platform.dataOf(answer, taskDetail.read)
    const counted = { BidCount, TotalDealCount, DealCompleteRate }
    return { ...known, Status: Task.Status, Task: withUuid(Task, uuid), ...counted }
  } catch (error) {
    if (error instanceof S3Error && error.code === 'NoSuchTask') return { ...known, Status: 'Unseen' }
    throw error
  }
}

import { actorOf } from 'dealgate/paid'
import {
  type Context,
  defineCall,
  type PageOf,
  type PageRequest,
  S3Error,
  type S3Request,
  withRaw,
} from 'dealgate/plugin'
import { z } from 'zod'
import { CREATE_TASK, checkManifest, fileSizesOf } from '../create/job.js'
import { isSeenBy } from '../create/made-tasks.js'
import { createdTask, type TaskInput } from '../create/reconcile.js'
import { newTask, taskAliases, termsOf } from '../create/terms.js'
import type { TaskDeps } from '../deps.js'
import { listOf, type platformDeal, type TaskDetail, task, taskDetail, withUuid } from '../documents.js'
import { platform } from '../platform.js'
import { acting, TOKEN } from '../sign-in.js'
import { type Bounds, pageQuery, platformPage, type SendOptions, SOURCE, send } from './send.js'

const listed = listOf(task.read, 'task', 'tasks')
const number = z.coerce.number().int().nonnegative().optional().catch(undefined)
const counts = z.looseObject({ total_items: number, total_task_count: number })

const tasksResult = z.object({
  Tasks: z.array(task.shown).meta({ element: 'Task' }),
  TotalItems: z.number().int().optional().describe('Tasks that meet the filters, on all pages.'),
  TotalTaskCount: z.number().int().optional().describe('Tasks in the list without its filters.'),
})

const text = z.string().max(200).optional()

/** Filters of a list of tasks, and their names on the platform. */
const FILTERS = {
  'created-after': 'created_after',
  'has-miner': 'has_miner',
  status: 'status',
  'is-public': 'is_public',
  'task-name': 'task_name',
  type: 'type',
  tags: 'tags',
  'max-price': 'max_price',
  'min-price': 'min_price',
} as const

const filters = {
  'created-after': z.number().int().optional().describe('Unix seconds.'),
  'has-miner': z.boolean().optional().describe('Only tasks with a provider, or only those without.'),
  status: text.describe('Created, Assigned, ActionRequired, ProgressWithFailure or Completed.'),
  'is-public': z.boolean().optional(),
  'task-name': text.describe('Part of the name.'),
  type: z.enum(['regular', 'verified']).optional(),
  tags: text.describe('Tags that a task must all have, separated by commas.'),
  'max-price': text.describe('Decimal: fil per GiB and epoch.'),
  'min-price': text.describe('Decimal: fil per GiB and epoch.'),
  ...pageQuery,
}

export function listPublicTasks(deps: TaskDeps) {
  return defineCall({
    name: 'ListPublicTasks',
    source: SOURCE,
    summary: 'Lists the public tasks of the task platform, newest first.',
    access: 'bearer',
    on: { method: 'GET', resource: 'service', path: '/-/task/v1/tasks' },
    query: z.strictObject(filters),
    result: tasksResult,
    pages: 'Tasks',
    answer: (call, context) => listTasks(deps, context, call, ['tasks'], { need: 'none' }),
  })
}

export function listMyTasks(deps: TaskDeps) {
  return defineCall({
    name: 'ListMyTasks',
    source: SOURCE,
    summary: 'Lists the tasks that the account of the caller has posted, newest first.',
    access: 'bearer',
    on: { method: 'GET', resource: 'service', path: '/-/task/v1/my-tasks' },
    query: z.strictObject(filters),
    result: tasksResult,
    pages: 'Tasks',
    answer: (call, context) => listTasks(deps, context, call, ['tasks'], { need: 'any' }),
  })
}

export function listMyProviderTasks(deps: TaskDeps) {
  return defineCall({
    name: 'ListMyProviderTasks',
    source: SOURCE,
    summary: 'Lists the tasks that storage providers of the caller work.',
    access: 'bearer',
    on: { method: 'GET', resource: 'service', path: '/-/task/v1/my-provider/tasks' },
    query: z.strictObject(filters),
    result: tasksResult,
    pages: 'Tasks',
    answer: (call, context) => listTasks(deps, context, call, ['my_miner', 'tasks'], { need: 'any' }),
  })
}

interface Listing {
  readonly request: Pick<S3Request, 'headers' | 'signal'>
  readonly page: PageRequest
  readonly query: Partial<Record<keyof typeof FILTERS, string | number | boolean | undefined>> & {
    readonly limit?: number | undefined
    readonly offset?: number | undefined
  }
}

async function listTasks(
  deps: TaskDeps,
  context: Context,
  { request, page: wanted, query }: Listing,
  path: readonly string[],
  sending: SendOptions,
) {
  const narrowed = Object.fromEntries(
    Object.entries(FILTERS).map(([name, wire]) => {
      const value = query[name as keyof typeof FILTERS]
      return [wire, typeof value === 'boolean' ? Number(value) : value]
    }),
  )
  const { page, found } = await platformPage(deps.options, { page: wanted, query }, async (bounds: Bounds) => {
    const call = { method: 'GET', path, query: { ...narrowed, ...bounds } } as const
    const answer = await send(deps, context, request, call, sending)
    const { data, ...outside } = counts.parse(answer.json)
    const inside = counts.safeParse(data).data
    const total = outside.total_items ?? inside?.total_items
    const all = outside.total_task_count ?? inside?.total_task_count
    const items = platform.dataOf(answer, listed)
    return { items, ...(total !== undefined && { total }), ...(all !== undefined && { all }), raw: answer.json }
  })
  const { total, all, raw } = found
  const counted = {
    ...(total !== undefined && { TotalItems: total }),
    ...(all !== undefined && { TotalTaskCount: all }),
  }
  return withRaw({ Tasks: page, ...counted }, raw)
}

const taskResult = taskDetail.shown.extend({
  Source: z
    .object({ Bucket: z.string().optional(), JobId: z.string() })
    .optional()
    .describe('The bucket that the task was created from through this server, and the job that created it.'),
})

/** A task as the platform shows it, with the UUID by which the request names it. */
function namedBy(detail: TaskDetail, uuid: string): TaskDetail {
  const { Task } = detail
  return { ...detail, Task: withUuid(Task, Task.TaskUuid ?? (/^\d+$/.test(uuid) ? undefined : uuid)) }
}

export function getTask(deps: TaskDeps) {
  return defineCall({
    name: 'GetTask',
    source: SOURCE,
    summary: 'Returns a task with its bids and a page of its deals.',
    access: 'bearer',
    on: { method: 'GET', resource: 'service', path: '/-/task/v1/tasks/{TaskUuid}' },
    query: z.strictObject(pageQuery),
    result: taskResult,
    root: 'GetTaskResult',
    pages: 'Deals',
    async answer({ request, query, page: wanted }, context) {
      const { TaskUuid = '' } = request.params
      const missing = () => new S3Error('NoSuchTask', { fields: { TaskUuid } })
      const { page, found } = await platformPage(deps.options, { page: wanted, query }, async (bounds) => {
        const call = { method: 'GET', path: ['tasks', TaskUuid], query: { ...bounds } } as const
        const answer = await send(deps, context, request, call, { need: 'optional', missing })
        const detail = namedBy(platform.dataOf(answer, taskDetail.read), TaskUuid)
        return { items: detail.Deals, total: detail.TotalDealCount, detail, raw: answer.json }
      })
      const source = await sourceOf(deps, context, TaskUuid)
      const detail = { ...found.detail, ...(source && { Source: source }) }
      return withRaw({ ...detail, Deals: page as PageOf<z.output<typeof platformDeal.shown>> }, found.raw)
    },
    async *members(context) {
      for await (const task of deps.made.all())
        if (task.uuid !== undefined && isSeenBy(task, context)) yield { TaskUuid: task.uuid }
    },
  })
}

async function sourceOf(
  deps: TaskDeps,
  context: Context,
  uuid: string,
): Promise<z.output<typeof taskResult>['Source']> {
  const task = await deps.made.withUuid(uuid)
  if (!task || !isSeenBy(task, context)) return undefined
  return { ...(task.bucket !== undefined && { Bucket: task.bucket }), JobId: task.jobId }
}

export function createTask(deps: TaskDeps) {
  return defineCall({
    name: 'CreateTask',
    source: SOURCE,
    summary: 'Creates a task: storage providers make deals for the files of a CSV.',
    access: 'signed',
    on: { method: 'POST', resource: 'service', path: '/-/task/v1/tasks' },
    body: newTask,
    aliases: taskAliases,
    result: createdTask,
    job: CREATE_TASK,
    spends: true,
    async order({ request, body }, context) {
      const terms = termsOf(body)
      const { File: csv, FileName: fileName, ManifestBucket: bucket, ManifestKey: key } = body
      if (csv !== undefined) fileSizesOf(csv)
      const manifest =
        bucket === undefined || key === undefined
          ? undefined
          : { bucket, key, stamp: await checkManifest(context, { bucket, key }) }
      const actor = actorOf(context, request, TOKEN)
      await acting(deps, actor, 'any', async () => undefined)
      const input: TaskInput = {
        terms,
        ...(csv !== undefined && { csv }),
        ...(fileName !== undefined && { fileName }),
        ...(manifest && { manifest }),
        ...(await deps.jobTokens.seal(actor)),
      }
      return { resource: bucket === undefined ? '/-/task/v1/tasks' : `/${bucket}`, input }
    },
  })
}

import {
  actorOf,
  type Context,
  defineCall,
  type PageOf,
  type PageRequest,
  providerDocument,
  S3Error,
  type S3Request,
  withRaw,
} from 'dealgate'
import { z } from 'zod'
import { acting, TOKEN } from '../acting.js'
import { CREATE_TASK, checkManifest, fileSizesOf } from '../create/job.js'
import type { MadeTask } from '../create/made-tasks.js'
import { BEARER_PURPOSE, createdTask, type TaskInput } from '../create/reconcile.js'
import { newTask, taskAliases, termsOf } from '../create/terms.js'
import { bidDocument, bidOf, dealOf, platformDeal, providerOf, taskDocument, taskOf, timeOf } from '../documents.js'
import type { TaskParts } from '../parts.js'
import { dataOf, listOf, type WireDetail, wireDetail, wireProvider, wireTask } from '../wire.js'
import { type Bounds, pageQuery, platformPage, type Sending, SOURCE, send } from './send.js'

const listed = listOf(wireTask, 'task', 'tasks')
const number = z.coerce.number().int().nonnegative().optional().catch(undefined)
const counts = z.looseObject({ total_items: number, total_task_count: number })

const tasksResult = z.object({
  Tasks: z.array(taskDocument).meta({ element: 'Task' }),
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

export function listPublicTasks(parts: TaskParts) {
  return defineCall({
    name: 'ListPublicTasks',
    source: SOURCE,
    summary: 'Lists the public tasks of the task platform, newest first.',
    access: 'bearer',
    on: { method: 'GET', resource: 'service', path: '/-/task/v1/tasks' },
    query: z.strictObject(filters),
    result: tasksResult,
    pages: 'Tasks',
    answer: (call, context) => listTasks(parts, context, call, ['tasks'], { need: 'none' }),
  })
}

export function listMyTasks(parts: TaskParts) {
  return defineCall({
    name: 'ListMyTasks',
    source: SOURCE,
    summary: 'Lists the tasks that the account of the caller has posted, newest first.',
    access: 'bearer',
    on: { method: 'GET', resource: 'service', path: '/-/task/v1/my-tasks' },
    query: z.strictObject(filters),
    result: tasksResult,
    pages: 'Tasks',
    answer: (call, context) => listTasks(parts, context, call, ['tasks'], { need: 'any' }),
  })
}

export function listMyProviderTasks(parts: TaskParts) {
  return defineCall({
    name: 'ListMyProviderTasks',
    source: SOURCE,
    summary: 'Lists the tasks that storage providers of the caller work.',
    access: 'bearer',
    on: { method: 'GET', resource: 'service', path: '/-/task/v1/my-provider/tasks' },
    query: z.strictObject(filters),
    result: tasksResult,
    pages: 'Tasks',
    answer: (call, context) => listTasks(parts, context, call, ['my_miner', 'tasks'], { need: 'any' }),
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
  parts: TaskParts,
  context: Context,
  { request, page: wanted, query }: Listing,
  path: readonly string[],
  sending: Sending,
) {
  const narrowed = Object.fromEntries(
    Object.entries(FILTERS).map(([name, wire]) => {
      const value = query[name as keyof typeof FILTERS]
      return [wire, typeof value === 'boolean' ? Number(value) : value]
    }),
  )
  const { page, found } = await platformPage(parts.options, { page: wanted, query }, async (bounds: Bounds) => {
    const call = { method: 'GET', path, query: { ...narrowed, ...bounds } } as const
    const answer = await send(parts, context, request, call, sending)
    const { data, ...outside } = counts.parse(answer.json)
    const inside = counts.safeParse(data).data
    const total = outside.total_items ?? inside?.total_items
    const all = outside.total_task_count ?? inside?.total_task_count
    const items = dataOf(answer, listed).map((task) => taskOf(task))
    return { items, ...(total !== undefined && { total }), ...(all !== undefined && { all }), raw: answer.json }
  })
  const { total, all, raw } = found
  const counted = {
    ...(total !== undefined && { TotalItems: total }),
    ...(all !== undefined && { TotalTaskCount: all }),
  }
  return withRaw({ Tasks: page, ...counted }, raw)
}

const taskDetail = z.object({
  Task: taskDocument,
  Bids: z.array(bidDocument).meta({ element: 'Bid' }),
  Deals: z.array(platformDeal).meta({ element: 'Deal' }),
  AverageBid: z.string(),
  BidCount: z.number().int(),
  DealCompleteRate: z.string(),
  TotalDealCount: z.number().int(),
  Miner: providerDocument.nullable(),
  Poster: z
    .object({
      CompleteTaskCount: z.number().int(),
      ContactInfo: z.string(),
      MemberSince: z.string(),
      MemberSinceTime: z.string().optional().describe('The same in RFC 3339.'),
    })
    .optional(),
  Source: z
    .object({ Bucket: z.string().optional(), JobId: z.string() })
    .optional()
    .describe('The bucket that the task was created from through this server, and the job that created it.'),
})

type TaskDetail = z.output<typeof taskDetail>

/** @param uuid as the request names the task */
function detailOf(detail: WireDetail, uuid: string): TaskDetail {
  const { poster } = detail
  const since = poster ? timeOf(poster.member_since) : undefined
  const miner = wireProvider.safeParse(detail.miner).data
  return {
    Task: taskOf(detail.task, detail.task.uuid ?? (/^\d+$/.test(uuid) ? null : uuid)),
    Bids: detail.bid.map(bidOf),
    Deals: detail.deal.map(dealOf),
    AverageBid: detail.average_bid,
    BidCount: detail.bid_count,
    DealCompleteRate: detail.deal_complete_rate,
    TotalDealCount: detail.total_deal_count,
    Miner: miner ? providerOf(miner) : null,
    ...(poster && {
      Poster: {
        CompleteTaskCount: poster.complete_task_count,
        ContactInfo: poster.contact_info,
        MemberSince: poster.member_since,
        ...(since !== undefined && { MemberSinceTime: since }),
      },
    }),
  }
}

export function getTask(parts: TaskParts) {
  return defineCall({
    name: 'GetTask',
    source: SOURCE,
    summary: 'Returns a task with its bids and a page of its deals.',
    access: 'bearer',
    on: { method: 'GET', resource: 'service', path: '/-/task/v1/tasks/{TaskUuid}' },
    query: z.strictObject(pageQuery),
    result: taskDetail,
    root: 'GetTaskResult',
    pages: 'Deals',
    async answer({ request, query, page: wanted }, context) {
      const { TaskUuid = '' } = request.params
      const missing = () => new S3Error('NoSuchTask', { fields: { TaskUuid } })
      const { page, found } = await platformPage(parts.options, { page: wanted, query }, async (bounds) => {
        const call = { method: 'GET', path: ['tasks', TaskUuid], query: { ...bounds } } as const
        const answer = await send(parts, context, request, call, { need: 'optional', missing })
        const detail = detailOf(dataOf(answer, wireDetail), TaskUuid)
        return { items: detail.Deals, total: detail.TotalDealCount, detail, raw: answer.json }
      })
      const source = await sourceOf(parts, context, TaskUuid)
      const detail = { ...found.detail, ...(source && { Source: source }) }
      return withRaw({ ...detail, Deals: page as PageOf<z.output<typeof platformDeal>> }, found.raw)
    },
    async *members(context) {
      for await (const task of parts.made.all())
        if (task.uuid !== undefined && isSeenBy(task, context)) yield { TaskUuid: task.uuid }
    },
  })
}

/** A key pair with rights or an account of its own sees only what it has created. */
function isSeenBy({ accessKeyId }: MadeTask, { caller }: Pick<Context, 'caller'>): boolean {
  if (!caller) return false
  const { rights, policies, account } = caller.identity
  return !(rights || policies || account) || accessKeyId === caller.identity.accessKeyId
}

async function sourceOf(parts: TaskParts, context: Context, uuid: string): Promise<TaskDetail['Source']> {
  const task = await parts.made.withUuid(uuid)
  if (!task || !isSeenBy(task, context)) return undefined
  return { ...(task.bucket !== undefined && { Bucket: task.bucket }), JobId: task.jobId }
}

export function createTask(parts: TaskParts) {
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
      await acting(parts, actor, 'any', async () => undefined)
      const input: TaskInput = {
        terms,
        ...(csv !== undefined && { csv }),
        ...(fileName !== undefined && { fileName }),
        ...(manifest && { manifest }),
        ...(actor.bearer !== undefined && { bearer: await parts.host.sealer.seal(actor.bearer, BEARER_PURPOSE) }),
      }
      return { resource: bucket === undefined ? '/-/task/v1/tasks' : `/${bucket}`, input }
    },
  })
}

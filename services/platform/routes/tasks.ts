import { z } from 'zod'
import { type Document, documents } from '../../../common/service-documents.js'
import { HttpError } from '../../http/errors.js'
import type { Provider } from '../../network/network.js'
import { providerRecord } from '../../network/provider-record.js'
import { documentSchema, membersOf, required } from '../../rest/schemas.js'
import { averagePrice, bidView } from '../bids.js'
import type { PlatformContext } from '../context.js'
import { knownProviders } from '../miners.js'
import { isParty, type PlatformRoute, pageOf, pageQuery, route } from '../route.js'
import { assignTask } from '../tasks/assign-task.js'
import { postTask } from '../tasks/create-task.js'
import { dealView } from '../tasks/deal-table.js'
import type { Task } from '../tasks/task.js'
import { conditionsOf, taskFilters } from '../tasks/task-query.js'
import type { Condition } from '../tasks/task-table.js'
import { taskSummary, taskView } from '../tasks/task-view.js'
import { respelled, taskForm, termsOf } from '../tasks/terms.js'
import type { Caller } from '../tokens.js'
import { FIRST_USER, hasProviders } from '../users.js'

/** Records in one answer, unless the request says otherwise. */
const USUAL_LIMIT = 20

const counts = { total_items: z.int().describe('That match.'), total_task_count: z.int() }

/** Clients of the interface look for the counts beside the list as well as beside the status. */
const taskList = {
  data: z.object({
    task: z.array(documentSchema(documents.task).extend(membersOf(documents.taskCounts))),
    ...counts,
  }),
  ...counts,
}

type TaskQuery = z.output<z.ZodObject<ReturnType<typeof pageQuery> & typeof taskFilters>>

const listTasks = route({
  method: 'GET',
  path: '/tasks',
  access: 'optional',
  summary: 'lists the tasks of the caller, or public ones',
  query: { ...pageQuery(), ...taskFilters },
  answer: taskList,
  handle({ context, caller, query }) {
    const scope =
      caller === undefined ? { sql: 'is_public = 1', values: [] } : { sql: '"user" = ?', values: [caller.user.id] }
    return tasksOf(context, scope, query)
  },
})

const listProviderTasks = route({
  method: 'GET',
  path: '/my_miner/tasks',
  access: 'user',
  summary: 'lists the tasks that providers of the caller have',
  query: { ...pageQuery(USUAL_LIMIT), ...taskFilters },
  answer: taskList,
  handle({ context, caller, query }) {
    // A user has all providers, or none.
    const sql = hasProviders(caller.user) ? 'miner_id IS NOT NULL' : '1 = 0'
    return tasksOf(context, { sql, values: [] }, query)
  },
})

async function tasksOf(context: PlatformContext, scope: Condition, query: TaskQuery) {
  const filters = conditionsOf(query)
  await context.market.scheduler.catchUp()
  const { tasks } = context.db.read
  const narrowed = [scope, ...filters]
  const shown = await tasks.page(narrowed, pageOf(context, query))
  const all = await tasks.count([scope])
  const matching = filters.length === 0 ? all : await tasks.count(narrowed)
  const counts = { total_items: matching, total_task_count: all }
  return { data: { task: shown.map(taskSummary), ...counts }, ...counts }
}

const provider = documentSchema(documents.provider)
const taskUuid = z.string().describe('UUID or number of the task.')

const showTask = route({
  method: 'GET',
  path: '/tasks/:task_uuid',
  access: 'optional',
  summary: 'shows a task with its bids and a page of its deals',
  params: { task_uuid: taskUuid },
  query: pageQuery(USUAL_LIMIT),
  answer: {
    data: z.object({
      average_bid: z.string().describe('Decimal: fil per GiB and epoch.'),
      bid: z.array(
        documentSchema(documents.bid).extend({
          platform_user_info: documentSchema(documents.bidder).extend({ miners: z.array(provider) }),
          task_id: z.int(),
        }),
      ),
      bid_count: z.int(),
      deal: z.array(documentSchema(documents.platformDeal)),
      deal_complete_rate: z.string().describe('Per cent, with two decimals.'),
      miner: provider.nullable(),
      poster: documentSchema(documents.poster),
      task: documentSchema(documents.task),
      total_deal_count: z.int(),
    }),
  },
  async handle({ context, caller, params, query }) {
    const { market, db } = context
    const page = pageOf(context, query)
    await market.scheduler.catchUp()
    const task = await readableTask(context, caller, params.task_uuid)
    const bids = await db.read.bids.ofTask(task.id)
    const owner = await db.read.users.get(FIRST_USER)
    const deals = await db.read.deals.ofTask(task.id, page.limit, page.offset)
    const providers = new Map((await knownProviders(context)).map((provider) => [provider.minerId, provider]))
    const shown = (minerId: string | null) => {
      const provider = minerId === null ? undefined : providers.get(minerId)
      return provider && providerRecord(provider)
    }
    return {
      data: {
        average_bid: averagePrice(bids),
        bid: bids.map((bid) => bidView(bid, { registered: owner?.registered ?? 0, provider: shown(bid.minerId) })),
        bid_count: bids.length,
        deal: deals.map((deal) => dealView(deal, isParty(caller, task.user))),
        deal_complete_rate: percent(task.activeDeals, task.deals),
        miner: shown(task.minerId) ?? null,
        poster: await posterOf(context, caller, task),
        task: taskView(task),
        total_deal_count: task.deals,
      },
    }
  },
})

/**
 * The task with this UUID or number. A private task is shown to its poster and to the user that has its provider.
 * Throws HttpError 404 for any other.
 */
async function readableTask({ db }: PlatformContext, caller: Caller | undefined, name: string): Promise<Task> {
  const { tasks } = db.read
  const byNumber = /^\d{1,15}$/.test(name)
  const task = byNumber ? await tasks.find(Number(name)) : (await tasks.findByUuid(name.toLowerCase()))?.task
  const mayRead = task !== undefined && (task.isPublic || isParty(caller, task.user))
  if (!mayRead) throw new HttpError(404, 'There is no such task.')
  return task
}

async function posterOf(
  { db }: PlatformContext,
  caller: Caller | undefined,
  { user }: Task,
): Promise<Document<typeof documents.poster>> {
  const { users, tasks } = db.read
  const poster = await users.get(user)
  return {
    complete_task_count: await tasks.completedOf(user),
    // The e-mail address is half of a sign-in.
    contact_info: isParty(caller, user) ? (poster?.email ?? '') : '',
    member_since: String(poster?.registered ?? 0),
  }
}

/** With two decimals, rounded down. */
function percent(part: number, whole: number): string {
  const hundredths = whole === 0 ? 0 : Math.floor((part * 10_000) / whole)
  return `${Math.floor(hundredths / 100)}.${String(hundredths % 100).padStart(2, '0')}`
}

const posted = { data: z.object({ filename: z.string(), uuid: z.string() }), message: z.string() }

/** A task with the deals of a CSV. */
const createTask = route({
  method: 'POST',
  path: '/tasks',
  access: 'user',
  summary: 'posts a task',
  body: taskForm,
  respelled,
  files: ['file'],
  answer: posted,
  handle({ context, caller, body }) {
    return context.uploads.run(caller.user.id, async () => {
      const { file, uuid, ...form } = await body()
      const terms = termsOf(form)
      if (file === undefined && !terms.isPublic) {
        throw new HttpError(400, 'file is missing: a private task needs a CSV with its deals.')
      }
      const provider = terms.minerId === null ? undefined : await findProvider(context, 'miner_id', terms.minerId)
      const request = { user: caller.user.id, terms, uuid, file, provider }
      const { task, mailed } = await postTask(context, request)
      return { data: { filename: task.fileName, uuid: task.uuid }, message: told('created', mailed) }
    })
  },
})

function told(what: string, mailed: boolean): string {
  const notice = mailed ? ' A notification email has been sent to the storage provider.' : ''
  return `Task ${what} successfully.${notice}`
}

/** Throws HttpError 400, which names the field. */
async function findProvider(context: PlatformContext, field: string, minerId: string): Promise<Provider> {
  const provider = (await knownProviders(context)).find((one) => one.minerId === minerId)
  if (provider === undefined) throw new HttpError(400, `${field}: there is no storage provider ${minerId}.`)
  if (!provider.offlineDealAvailable) {
    throw new HttpError(400, `${field}: the storage provider ${minerId} takes no offline deals.`)
  }
  return provider
}

/**
 * The poster of a task without a provider names one, and may replace the deals by those of a CSV, which it has sent to
 * the provider itself.
 */
const updateTask = route({
  method: 'PUT',
  path: '/uuid_tasks/:task_uuid',
  access: 'user',
  summary: 'names the provider of a task that has none',
  params: { task_uuid: taskUuid },
  body: { miner_fid: required('The field miner_fid is missing.') },
  files: ['file'],
  answer: posted,
  async handle({ context, caller, params, body }) {
    const own = () => ownTask(context, caller, params.task_uuid)
    await own()
    return context.uploads.run(caller.user.id, async () => {
      const { miner_fid: minerId, file } = await body()
      if (file === undefined && (await own()).deals === 0)
        throw new HttpError(400, 'file is missing: send the deals of the task in a CSV.')
      const provider = await findProvider(context, 'miner_fid', minerId)
      await context.market.scheduler.catchUp()
      const { task, mailed } = await assignTask(context, { task: await own(), provider, file })
      return { data: { filename: task.fileName, uuid: task.uuid }, message: told('updated', mailed) }
    })
  },
})

/** Throws HttpError 404 for a task that the caller may not read, and 403 for that of another user. */
async function ownTask(context: PlatformContext, caller: Caller, name: string): Promise<Task> {
  const task = await readableTask(context, caller, name)
  if (task.user !== caller.user.id) {
    throw new HttpError(403, 'Only the poster of the task may name its storage provider.')
  }
  return task
}

export const tasks: readonly PlatformRoute[] = [listTasks, showTask, createTask, updateTask, listProviderTasks]

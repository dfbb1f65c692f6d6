import { lenient } from 'dealgate/paid'
import { type Context, defineCall, S3Error, type ServiceAnswer, withRaw } from 'dealgate/plugin'
import { z } from 'zod'
import type { TaskDeps } from '../deps.js'
import { listOf, platformDeal } from '../documents.js'
import { platform } from '../platform.js'
import { pageQuery, platformPage, SOURCE, send } from './send.js'

const extra = z.record(z.string(), z.string()).optional().describe('Further fields for the platform, by its own names.')

export function updateMyProvider(deps: TaskDeps) {
  return defineCall({
    name: 'UpdateMyProvider',
    source: SOURCE,
    summary: 'Changes how a storage provider of the caller bids. Absent members stay as they are.',
    access: 'bearer',
    on: { method: 'POST', resource: 'service', path: '/-/task/v1/my-provider' },
    body: z.strictObject({
      MinerId: z.string().min(1).max(100),
      BidMode: z.enum(['0', '1']).optional().describe('1: it bids by itself; 0: it does not.'),
      ExpectedSealingTime: z.number().int().min(0).optional().describe('Epochs.'),
      StartEpoch: z.number().int().min(0).optional().describe('Epochs from the assignment of a deal to its start.'),
      AutoBidTaskPerDay: z.number().int().min(0).optional(),
      Location: z.string().max(100).optional(),
      OfflineDealAvailable: z.boolean().optional(),
      Extra: extra,
    }),
    aliases: { miner_fid: 'MinerId' },
    result: z.object({
      Message: z.string(),
      Provider: z.record(z.string(), z.string()).describe('The provider as the platform shows it, by its own names.'),
    }),
    async answer({ request, body }, context) {
      const fields = present({
        ...body.Extra,
        miner_fid: body.MinerId,
        bid_mode: body.BidMode,
        expected_sealing_time: body.ExpectedSealingTime,
        start_epoch: body.StartEpoch,
        auto_bid_task_per_day: body.AutoBidTaskPerDay,
        location: body.Location,
        offline_deal_available: body.OfflineDealAvailable,
      })
      const missing = () => new S3Error('NoSuchProvider', { fields: { MinerId: body.MinerId } })
      const call = { method: 'POST', path: ['miner', 'info'], body: { kind: 'form', fields } } as const
      const answer = await send(deps, context, request, call, { need: 'any', missing })
      const data = platform.dataOf(answer, z.record(z.string(), z.unknown()).nullish())
      const reported = Object.entries(data ?? {}).flatMap(([name, value]): [string, string][] =>
        typeof value === 'object' ? [] : [[name, String(value)]],
      )
      return withRaw({ Message: messageOf(answer), Provider: Object.fromEntries(reported) }, answer.json)
    },
  })
}

const listed = listOf(platformDeal.read, 'deal', 'deals')

export function listProviderDeals(deps: TaskDeps) {
  return defineCall({
    name: 'ListProviderDeals',
    source: SOURCE,
    summary: 'Lists the deals of tasks that a storage provider works.',
    access: 'bearer',
    on: { method: 'GET', resource: 'service', path: '/-/task/v1/providers/{MinerFid}/offline-deals' },
    query: z.strictObject({
      'deal-status': z.string().max(64).optional().describe('Such as Created, ReadyForImport or DealActive.'),
      ...pageQuery,
    }),
    result: z.object({ Deals: z.array(platformDeal.shown).meta({ element: 'Deal' }) }),
    pages: 'Deals',
    async answer({ request, query, page: wanted }, context) {
      const { MinerFid = '' } = request.params
      const missing = () => new S3Error('NoSuchProvider', { fields: { MinerId: MinerFid } })
      const { page, found } = await platformPage(deps.options, { page: wanted, query }, async (bounds) => {
        const filter = { deal_status: query['deal-status'], ...bounds }
        const call = { method: 'GET', path: ['offline_deals', MinerFid], query: filter } as const
        const answer = await send(deps, context, request, call, { need: 'any', missing })
        return { items: platform.dataOf(answer, listed), raw: answer.json }
      })
      return withRaw({ Deals: page }, found.raw)
    },
  })
}

/**
 * The declaration of a call that has the methods POST, for clients of models, and PUT, for `aws s3api put-object`. Both
 * ask for the same action.
 */
function asOne(name: 'UpdateMyDeal' | 'UpdateTaskDealStatus', method: 'POST' | 'PUT') {
  const action = `task:${name}` as const
  return {
    name: method === 'POST' ? name : name.replace('Update', 'Put'),
    action,
    ownRules: true,
    async admit(_request: unknown, { caller, checks }: Context) {
      if (caller) await checks.requireAction(action)
    },
  } as const
}

const status = z.string().min(1).max(64).describe('One word, such as Downloading, FileImported or DealActive.')
const note = z.string().max(4096).optional()

const updatedDeal = z.object({ Deal: platformDeal.shown.optional(), Message: z.string() })

const dealUpdate = z.strictObject({
  Status: status,
  Note: note,
  FilePath: z.string().max(4096).optional(),
  FileSize: z.number().int().min(0).optional().describe('Bytes.'),
  Cost: z.string().max(100).optional().describe('Decimal, as text: fil.'),
  Extra: extra,
})

/** The provider writes what it did with a deal. The platform's clients name deals by number, its documents by CID. */
export function updateMyDeal(deps: TaskDeps, method: 'POST' | 'PUT') {
  return defineCall({
    ...asOne('UpdateMyDeal', method),
    source: SOURCE,
    summary: 'Writes the state of a deal that a storage provider of the caller works.',
    access: 'bearer',
    on: { method, resource: 'service', path: '/-/task/v1/my-provider/deals/{Deal}' },
    body: dealUpdate,
    result: updatedDeal,
    async answer({ request, body }, context) {
      const { Deal = '' } = request.params
      const fields = present({
        ...body.Extra,
        status: body.Status,
        note: body.Note,
        file_path: body.FilePath,
        file_size: body.FileSize,
        cost: body.Cost,
      })
      const missing = () => new S3Error('NoSuchDeal', { fields: { Deal } })
      const call = { method: 'PUT', path: ['my_miner', 'deals', Deal], body: { kind: 'form', fields } } as const
      return answerOf(await send(deps, context, request, call, { need: 'any', missing }))
    },
  })
}

export function updateTaskDealStatus(deps: TaskDeps, method: 'POST' | 'PUT') {
  return defineCall({
    ...asOne('UpdateTaskDealStatus', method),
    source: SOURCE,
    summary: 'Writes the state of a deal, named by its task and its CID.',
    access: 'bearer',
    on: { method, resource: 'service', path: '/-/task/v1/my-provider/tasks/{TaskUuid}/deals/{DealCid}' },
    body: z.strictObject({ Status: status, Note: note }),
    result: updatedDeal,
    async answer({ request, body }, context) {
      const { TaskUuid = '', DealCid = '' } = request.params
      const fields = present({ status: body.Status, note: body.Note })
      const missing = () => new S3Error('NoSuchDeal', { fields: { TaskUuid, DealCid } })
      const path = ['my_miner', 'tasks', TaskUuid, 'deals', DealCid]
      const call = { method: 'PUT', path, body: { kind: 'form', fields } } as const
      return answerOf(await send(deps, context, request, call, { need: 'any', missing }))
    },
  })
}

function answerOf(answer: ServiceAnswer) {
  const data = platform.dataOf(answer, z.object({ deal: platformDeal.read.nullish(), message: lenient.text }).nullish())
  const message = data?.message || messageOf(answer)
  return withRaw({ ...(data?.deal && { Deal: data.deal }), Message: message }, answer.json)
}

function messageOf({ json }: ServiceAnswer): string {
  return z.object({ message: lenient.text }).safeParse(json).data?.message ?? ''
}

/** Members that are not undefined, as text. */
function present(members: Readonly<Record<string, unknown>>): [string, string][] {
  return Object.entries(members).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]]))
}

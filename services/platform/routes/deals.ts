import { z } from 'zod'
import { documents } from '../../../common/service-documents.js'
import { HttpError } from '../../http/errors.js'
import { documentSchema, optional, required } from '../../rest/schemas.js'
import type { PlatformContext } from '../context.js'
import { knownProvider } from '../miners.js'
import { isParty, type PlatformRoute, pageOf, pageQuery, route } from '../route.js'
import type { PlatformTables } from '../store.js'
import { type DealUpdate, dealView, type PlatformDeal } from '../tasks/deal-table.js'
import { writeUpdate } from '../tasks/progress.js'
import type { Caller } from '../tokens.js'
import { parsePrice } from '../units.js'
import { hasProviders } from '../users.js'

const MAX_STATUS = 64
const MAX_TEXT = 4096

/** What the provider writes. */
const dealUpdate = {
  status: required('The field status is missing.')
    .trim()
    .refine(
      (status) => /^[\x21-\x7e]+$/.test(status) && status.length <= MAX_STATUS,
      `status must be one word of at most ${MAX_STATUS} characters, such as Downloading.`,
    ),
  note: text('note'),
  file_path: text('file_path'),
  file_size: optional(
    (text) => (/^\d{1,15}$/.test(text) ? Number(text) : undefined),
    'file_size must be a number of bytes.',
  ).describe('Bytes.'),
  cost: optional(
    (text) => (parsePrice(text) === undefined ? undefined : text),
    'cost must be a decimal number of fil.',
  ).describe('Decimal: fil.'),
}

function text(name: string) {
  return z.string().max(MAX_TEXT, `${name} may have at most ${MAX_TEXT} characters.`).optional()
}

function updateOf(body: z.output<z.ZodObject<typeof dealUpdate>>): DealUpdate {
  const { status, note, file_path: filePath, file_size: fileSize, cost } = body
  return {
    status,
    ...(note !== undefined && { note }),
    ...(filePath !== undefined && { filePath }),
    ...(fileSize !== undefined && { fileSize }),
    ...(cost !== undefined && { cost }),
  }
}

const dealDocument = documentSchema(documents.platformDeal)

const updateDeal = route({
  method: 'PUT',
  path: '/my_miner/deals/:deal',
  access: 'user',
  summary: 'writes what the provider did with a deal, named by number or CID',
  params: { deal: z.string() },
  body: dealUpdate,
  answer: { status: z.literal('Success'), data: z.object({ deal: dealDocument, message: z.string() }) },
  async handle({ context, caller, params, body }) {
    const update = updateOf(await body())
    const deal = await change(context, caller, update, ({ deals }) => dealsNamed(deals, params.deal))
    const data = { deal: dealView(deal, true), message: `Deal ${deal.id} has been updated.` }
    return { status: 'Success' as const, data }
  },
})

const updateTaskDeal = route({
  method: 'PUT',
  path: '/my_miner/tasks/:task_uuid/deals/:deal_cid',
  access: 'user',
  summary: 'the same, for a deal named by its task and its CID',
  params: { task_uuid: z.string(), deal_cid: z.string() },
  body: dealUpdate,
  answer: { data: z.object({ deal: dealDocument.omit({ id: true, user_id: true }), message: z.string() }) },
  async handle({ context, caller, params, body }) {
    const update = updateOf(await body())
    const changed = await change(context, caller, update, async ({ tasks, deals }) => {
      const task = (await tasks.findByUuid(params.task_uuid.toLowerCase()))?.task
      return (await deals.findByCid(params.deal_cid)).filter((deal) => deal.task === task?.id)
    })
    const { id: _id, user_id: _user, ...deal } = dealView(changed, true)
    return { data: { deal, message: `The status of the deal is ${changed.status} now.` } }
  },
})

async function dealsNamed(deals: PlatformTables['deals'], name: string): Promise<PlatformDeal[]> {
  if (!/^\d+$/.test(name)) return deals.findByCid(name)
  const deal = name.length > 15 ? undefined : await deals.find(Number(name))
  return deal === undefined ? [] : [deal]
}

/** Checks and changes a deal in one transaction. Throws HttpError 403, 404 or 409; then nothing has changed. */
async function change(
  { market, db, network, seconds }: PlatformContext,
  caller: Caller,
  update: DealUpdate,
  find: (tables: PlatformTables) => Promise<PlatformDeal[]>,
): Promise<PlatformDeal> {
  await market.scheduler.catchUp()
  return db.transaction(async (tables) => {
    const { id } = await theOne(caller, tables, await find(tables))
    return writeUpdate(tables, id, update, seconds(), network.epoch())
  })
}

/** A deal of a task that the caller may not read is as good as none: an answer must not confirm it. */
async function theOne(
  caller: Caller,
  { tasks }: PlatformTables,
  deals: readonly PlatformDeal[],
): Promise<PlatformDeal> {
  const known: PlatformDeal[] = []
  for (const deal of deals) {
    if (isParty(caller, deal.user) || (await tasks.find(deal.task))?.isPublic) known.push(deal)
  }
  if (known.length === 0) throw new HttpError(404, 'There is no such deal.')
  const [deal, another] = known.filter(({ minerId }) => minerId !== null && hasProviders(caller.user))
  if (deal === undefined) throw new HttpError(403, 'Only the storage provider of the deal may update it.')
  if (another !== undefined) {
    throw new HttpError(409, `Several tasks have this deal: name it by its number, such as ${deal.id}.`)
  }
  return deal
}

/** The user that has the provider sees all of its deals, anyone else those of their own tasks and of public ones. */
const listDeals = route({
  method: 'GET',
  path: '/offline_deals/:miner_fid',
  access: 'user',
  summary: 'lists the deals of a provider: its owner sees all',
  params: { miner_fid: z.string() },
  query: { ...pageQuery(20), deal_status: z.string().trim().optional() },
  answer: { data: z.object({ deal: z.array(dealDocument) }) },
  async handle({ context, caller, params, query }) {
    const minerId = params.miner_fid
    await knownProvider(context, minerId)
    await context.market.scheduler.catchUp()
    const reader = hasProviders(caller.user) ? undefined : caller.user.id
    const status = query.deal_status || undefined
    const deals = await context.db.read.deals.ofProvider(minerId, reader, status, pageOf(context, query))
    return { data: { deal: deals.map((deal) => dealView(deal, isParty(caller, deal.user))) } }
  },
})

/** The deals of storage providers, in the order of their tasks. */
export const deals: readonly PlatformRoute[] = [listDeals, updateDeal, updateTaskDeal]

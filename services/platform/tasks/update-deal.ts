import { HttpError } from '../../http/errors.js'
import { isParty, type PlatformExchange, readFields, readPage, requireUser } from '../exchange.js'
import type { Fields } from '../fields.js'
import { knownProvider } from '../miners.js'
import type { PlatformTables } from '../store.js'
import { parsePrice } from '../units.js'
import { hasProviders } from '../users.js'
import { type DealUpdate, dealView, type PlatformDeal } from './deal-table.js'
import { writeUpdate } from './progress.js'

const MAX_STATUS = 64
const MAX_TEXT = 4096

/** PUT /my_miner/deals/{deal}: the provider writes what it did with a deal, named by number or CID. */
export async function updateDeal(exchange: PlatformExchange): Promise<object> {
  const update = readUpdate(await readFields(exchange))
  const deal = await change(exchange, update, ({ deals }) => dealsNamed(deals, exchange.path.deal ?? ''))
  return { status: 'Success', data: { deal: dealView(deal, true), message: `Deal ${deal.id} has been updated.` } }
}

/** PUT /my_miner/tasks/{task_uuid}/deals/{deal_cid}: as `updateDeal`, for a deal named by its task and its CID. */
export async function updateTaskDeal(exchange: PlatformExchange): Promise<object> {
  const { task_uuid = '', deal_cid = '' } = exchange.path
  const update = readUpdate(await readFields(exchange))
  const changed = await change(exchange, update, async ({ tasks, deals }) => {
    const task = (await tasks.findByUuid(task_uuid.toLowerCase()))?.task
    return (await deals.findByCid(deal_cid)).filter((deal) => deal.task === task?.id)
  })
  const { id: _id, user_id: _user, ...deal } = dealView(changed, true)
  return { data: { deal, message: `The status of the deal is ${changed.status} now.` } }
}

async function dealsNamed(deals: PlatformTables['deals'], name: string): Promise<PlatformDeal[]> {
  if (!/^\d+$/.test(name)) return deals.findByCid(name)
  const deal = name.length > 15 ? undefined : await deals.find(Number(name))
  return deal === undefined ? [] : [deal]
}

/** Checks and changes a deal in one transaction. Throws HttpError 403, 404 or 409; then nothing has changed. */
async function change(
  exchange: PlatformExchange,
  update: DealUpdate,
  find: (tables: PlatformTables) => Promise<PlatformDeal[]>,
): Promise<PlatformDeal> {
  const { context } = exchange
  const { market, db, network, seconds } = context
  await market.scheduler.catchUp()
  return db.transaction(async (tables) => {
    const { id } = await theOne(exchange, tables, await find(tables))
    return writeUpdate(tables, id, update, seconds(), network.epoch())
  })
}

/** A deal of a task that the caller may not read is as good as none: an answer must not confirm it. */
async function theOne(
  exchange: PlatformExchange,
  { tasks }: PlatformTables,
  deals: readonly PlatformDeal[],
): Promise<PlatformDeal> {
  const user = requireUser(exchange)
  const known: PlatformDeal[] = []
  for (const deal of deals) {
    if (isParty(exchange, deal.user) || (await tasks.find(deal.task))?.isPublic) known.push(deal)
  }
  if (known.length === 0) throw new HttpError(404, 'There is no such deal.')
  const [deal, another] = known.filter(({ minerId }) => minerId !== null && hasProviders(user))
  if (deal === undefined) throw new HttpError(403, 'Only the storage provider of the deal may update it.')
  if (another !== undefined) {
    throw new HttpError(409, `Several tasks have this deal: name it by its number, such as ${deal.id}.`)
  }
  return deal
}

function readUpdate(fields: Fields): DealUpdate {
  const status = fields.required('status').trim()
  if (!/^[\x21-\x7e]+$/.test(status) || status.length > MAX_STATUS) {
    throw new HttpError(400, `status must be one word of at most ${MAX_STATUS} characters, such as Downloading.`)
  }
  const note = readText(fields, 'note')
  const filePath = readText(fields, 'file_path')
  const fileSize = readSize(fields)
  const cost = readCost(fields)
  return {
    status,
    ...(note !== undefined && { note }),
    ...(filePath !== undefined && { filePath }),
    ...(fileSize !== undefined && { fileSize }),
    ...(cost !== undefined && { cost }),
  }
}

function readText(fields: Fields, name: string): string | undefined {
  const text = fields.get(name)
  if (text !== undefined && text.length > MAX_TEXT) {
    throw new HttpError(400, `${name} may have at most ${MAX_TEXT} characters.`)
  }
  return text
}

function readSize(fields: Fields): number | undefined {
  const text = fields.get('file_size') ?? ''
  if (text === '') return undefined
  if (!/^\d{1,15}$/.test(text)) throw new HttpError(400, 'file_size must be a number of bytes.')
  return Number(text)
}

function readCost(fields: Fields): string | undefined {
  const text = fields.get('cost') ?? ''
  if (text === '') return undefined
  if (parsePrice(text) === undefined) throw new HttpError(400, 'cost must be a decimal number of fil.')
  return text
}

const USUAL_DEALS = 20

/**
 * GET /offline_deals/{miner_fid}: the deals of a provider, in the order of their tasks. The user that has the provider
 * sees all of them, anyone else those of their own tasks and of public ones.
 */
export async function listDeals(exchange: PlatformExchange): Promise<object> {
  const { context, path, query } = exchange
  const user = requireUser(exchange)
  const minerId = path.miner_fid ?? ''
  const page = readPage(exchange, USUAL_DEALS)
  await knownProvider(context, minerId)
  await context.market.scheduler.catchUp()
  const status = query.get('deal_status')?.trim() || undefined
  const reader = hasProviders(user) ? undefined : user.id
  const deals = await context.db.read.deals.ofProvider(minerId, reader, status, page)
  return { data: { deal: deals.map((deal) => dealView(deal, isParty(exchange, deal.user))) } }
}

import { HttpError } from '../../http/errors.js'
import type { PlatformContext } from '../context.js'
import { isParty, type PlatformExchange, readFields, readPage, requireUser } from '../exchange.js'
import type { Fields } from '../fields.js'
import { knownProvider } from '../miners.js'
import { parsePrice } from '../units.js'
import { type DealUpdate, dealView, type PlatformDeal } from './deal-table.js'
import { writeUpdate } from './progress.js'

const MAX_STATUS = 64
const MAX_TEXT = 4096

/** PUT /my_miner/deals/{deal}: the provider writes what it did with a deal, named by number or CID. */
export async function updateDeal(exchange: PlatformExchange): Promise<object> {
  const update = readUpdate(await readFields(exchange))
  const deal = await change(exchange, update, ({ market }) => dealsNamed(market.deals, exchange.path.deal ?? ''))
  return { status: 'Success', data: { deal: dealView(deal, true), message: `Deal ${deal.id} has been updated.` } }
}

/** PUT /my_miner/tasks/{task_uuid}/deals/{deal_cid}: as `updateDeal`, for a deal named by its task and its CID. */
export async function updateTaskDeal(exchange: PlatformExchange): Promise<object> {
  const { task_uuid = '', deal_cid = '' } = exchange.path
  const update = readUpdate(await readFields(exchange))
  const changed = await change(exchange, update, ({ market }) => {
    const task = market.tasks.findByUuid(task_uuid.toLowerCase())?.task
    return market.deals.findByCid(deal_cid).filter((deal) => deal.task === task?.id)
  })
  const { id: _id, user_id: _user, ...deal } = dealView(changed, true)
  return { data: { deal, message: `The status of the deal is ${changed.status} now.` } }
}

function dealsNamed(deals: PlatformContext['market']['deals'], name: string): PlatformDeal[] {
  if (!/^\d+$/.test(name)) return deals.findByCid(name)
  const deal = name.length > 15 ? undefined : deals.find(Number(name))
  return deal === undefined ? [] : [deal]
}

/** Checks and changes a deal in one transaction. Throws HttpError 403, 404 or 409; then nothing has changed. */
async function change(
  exchange: PlatformExchange,
  update: DealUpdate,
  find: (context: PlatformContext) => PlatformDeal[],
): Promise<PlatformDeal> {
  const { context } = exchange
  const { market, writer, network, seconds } = context
  await market.scheduler.catchUp()
  return writer.run(() => {
    const { id } = theOne(exchange, find(context))
    return writeUpdate(market, id, update, seconds(), network.epoch())
  })
}

/** A deal of a task that the caller may not read is as good as none: an answer must not confirm it. */
function theOne(exchange: PlatformExchange, deals: readonly PlatformDeal[]): PlatformDeal {
  const { miners, market } = exchange.context
  const user = requireUser(exchange)
  const known = deals.filter((deal) => isParty(exchange, deal.user) || market.tasks.find(deal.task)?.isPublic)
  if (known.length === 0) throw new HttpError(404, 'There is no such deal.')
  const [deal, another] = known.filter(({ minerId }) => minerId !== null && miners.isOwner(user))
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
  const reader = context.miners.isOwner(user) ? undefined : user.id
  const deals = context.market.deals.ofProvider(minerId, reader, status, page)
  return { data: { deal: deals.map((deal) => dealView(deal, isParty(exchange, deal.user))) } }
}

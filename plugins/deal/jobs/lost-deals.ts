import type { ListedExpense } from 'dealgate/paid'
import { type Context, parseAmount, S3Error } from 'dealgate/plugin'
import { type GatewayDeal, instantOf, type ListedDeal } from '../deal-answers.js'
import { DealClient } from '../deal-client.js'
import type { DealDeps } from '../deps.js'
import { payingAccount } from '../subject.js'

const PAGE = 1000

/** Most objects whose history is asked for, over all buckets. */
const MAX_OBJECTS = 10_000

/**
 * Counts what the account has spent on deals today as the gateway lists it, once after each loss of the state store
 * that an operator has accepted. Throws S3Error: nothing is spent before that is known.
 */
export function recoverSpending(deps: DealDeps, context: Context): Promise<void> {
  const account = payingAccount(context.caller)
  if (account === '') return deps.spending.recover('gateway:', (since) => listLost(deps, deps.host.own, since))
  // A key pair with rights of its own may see less than its account: it does not look for all.
  const { rights, accessKeyId } = context.caller?.identity ?? {}
  const seen = rights ? `${account}/${accessKeyId}` : account
  return deps.spending.recover(`gateway:${seen}`, (since) => listLost(deps, context, since))
}

async function listLost(deps: DealDeps, context: Context, since: number): Promise<readonly ListedExpense[]> {
  const client = new DealClient(context.gateway, context.log)
  const { dealList } = await context.gateway.features()
  const lost = dealList ? await listed(deps, client, since) : await inHistories(deps, context, client, since)
  if (lost.length > 0)
    context.log.warn({ deals: lost.length }, 'the gateway lists deals of today that no record has: they count as spent')
  return lost
}

/** Listed deals that are on no record, and that no job of this server waits for. */
async function listed(deps: DealDeps, client: DealClient, since: number): Promise<ListedExpense[]> {
  const lost: ListedExpense[] = []
  const awaited = await deps.attempts.tokens()
  for (const deal of await client.listedSince(since)) {
    const { bucket_name: bucket, clientToken, dealCid } = deal
    if (awaited.has(clientToken) || (dealCid !== '' && (await deps.deals.get(dealCid)))) continue
    if (deal.offline && (await deps.tasks.of(bucket)).some(({ sent }) => sent >= since)) continue
    lost.push({ id: clientToken || dealCid, bucket, amount: amountOf(deal) })
  }
  return lost
}

/** What gateways tell that do not list deals: the history of each bucket and object of the account. */
async function inHistories(
  deps: DealDeps,
  context: Context,
  client: DealClient,
  since: number,
): Promise<ListedExpense[]> {
  const lost: ListedExpense[] = []
  const look = async (bucket: string, key?: string) => {
    const { entries = [] } = await client.history({ bucket, ...(key !== undefined && { key }) }).catch(withoutHistory)
    for (const { status, data } of entries) {
      if (!data?.dealCid || status.toLowerCase() !== 'success' || !isSince(data, since)) continue
      if (!(await deps.deals.get(data.dealCid))) lost.push({ id: data.dealCid, bucket, amount: amountOf(data) })
    }
  }
  let left = MAX_OBJECTS
  for (const { name: bucket } of await context.gateway.listBuckets()) {
    await look(bucket)
    for (let after: string | undefined = ''; after !== undefined; ) {
      const page = await context.store.list(bucket, { prefix: '', delimiter: '', after, limit: PAGE })
      const keys = page.entries.flatMap((entry) => (entry.kind === 'object' ? [entry.key] : []))
      for (const key of keys) if (left-- > 0) await look(bucket, key)
      after = page.truncated && left > 0 ? keys.at(-1) : undefined
    }
  }
  if (left < 0)
    context.log.warn({ objects: MAX_OBJECTS }, 'the deals of further objects were not read: today may have cost more')
  return lost
}

/** A gateway that refuses the question has no history that could be counted. */
function withoutHistory(error: unknown): { readonly entries: undefined } {
  if (error instanceof S3Error && error.status < 500) return { entries: undefined }
  if (error instanceof S3Error && error.code === 'NotImplemented') return { entries: undefined }
  throw error
}

function isSince({ timeStamp }: GatewayDeal, since: number): boolean {
  const made = instantOf(timeStamp)
  return made === undefined || Number(made / 1000n) >= since
}

function amountOf({ price, duration }: Pick<ListedDeal, 'price' | 'duration'>): bigint {
  return (parseAmount(price) ?? 0n) * BigInt(/^\d{1,15}$/.test(duration) ? duration : 0)
}

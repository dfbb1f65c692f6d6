import pMap from 'p-map'
import { z } from 'zod'
import { uriEncode } from '../common/sigv4.js'
import { Failure } from './command.js'
import type { Config } from './config/config.js'
import { callEndpoint, type Endpoint } from './endpoint-call.js'
import { pagesOf, type Row, secondsOf, showTable, type WatchFlags } from './watch.js'
import { jobsOf, outcomeOf, progressOf, type ShownJob } from './watch-jobs.js'

const Deal = z.object({
  Bucket: z.string(),
  Key: z.string().optional(),
  DealCid: z.string(),
  MinerId: z.string(),
  Status: z.string(),
  StatusMessage: z.string().optional(),
  CreatedAt: z.string().optional(),
  EstimatedExpiry: z.string().optional(),
  RetiredAt: z.string().optional(),
})
type Deal = z.output<typeof Deal>

/** States in which a deal stays, or from which it only ends. */
const SETTLED = 'StorageDealActive'
const ENDED = /^StorageDeal(Expired|Slashed|Error|Failing|Rejecting|ProposalRejected|ProposalNotFound)$/
/** Other gateways may have other states, which may never change. */
const KNOWN = /^StorageDeal/
const NOT_FOUND = 404
/** Requests for present states at the same time. */
const MAX_CONCURRENCY = 4

/**
 * `dealgate deals`: the newest deals that were made through the running server, with their present state, and the jobs
 * that have not made theirs.
 */
export async function showDeals(config: Config, bucket: string | undefined, own: WatchFlags): Promise<void> {
  const settled = new Map<string, unknown>()
  await showTable(config, own, async (endpoint, limit) => {
    // In this order, a deal that is made meanwhile is in one of the lists.
    const jobs = await jobsOf(endpoint, limit, 'deal', (job) => isWithoutDeal(job, bucket))
    const deals = await dealsOf(endpoint, limit, bucket, settled)
    const rows = [
      ...jobs.map(({ shown }) => ({ at: shown.CreationTime, row: rowOfJob(shown) })),
      ...deals.map(({ shown }) => ({ at: shown.CreatedAt ?? '', row: rowOfDeal(shown) })),
    ].sort((a, b) => (a.at < b.at ? 1 : a.at > b.at ? -1 : 0))
    return {
      head: ['KEY', 'STATE', 'PROGRESS', 'PROVIDER', 'MADE', 'CID'],
      rows: rows.slice(0, limit).map(({ row }) => row),
      document: { Deals: deals.map(({ document }) => document), Jobs: jobs.map(({ document }) => document) },
    }
  })
}

interface ListedDeal {
  readonly shown: Deal
  readonly document: unknown
}

/** @param settled documents of deals by CID that are not asked for again */
async function dealsOf(
  endpoint: Endpoint,
  limit: number,
  bucket: string | undefined,
  settled: Map<string, unknown>,
): Promise<ListedDeal[]> {
  const found: ListedDeal[] = []
  for await (const document of pagesOf(endpoint, '/-/deal/v1/deals', 'Deals')) {
    const shown = Deal.parse(document)
    if (bucket === undefined || shown.Bucket === bucket) found.push({ shown, document })
    if (found.length === limit) break
  }
  return pMap(found, (deal) => present(endpoint, deal, settled), { concurrency: MAX_CONCURRENCY })
}

/** The list has the last known state, which may be minutes old or none yet. */
async function present(endpoint: Endpoint, listed: ListedDeal, settled: Map<string, unknown>): Promise<ListedDeal> {
  const { DealCid, Status } = listed.shown
  if (DealCid === '' || Status === SETTLED || ENDED.test(Status)) return listed
  const path = `/-/deal/v1/deals/${uriEncode(DealCid)}`
  const ask = () =>
    callEndpoint(endpoint, { method: 'GET', path }).catch((error: unknown) => {
      // A gateway may have forgotten a deal that the list has.
      if (error instanceof Failure && error.cause === NOT_FOUND) return listed.document
      throw error
    })
  const document = settled.get(DealCid) ?? (await ask())
  const shown = Deal.parse(document)
  if (outcomeOfDeal(shown) !== 'pending') settled.set(DealCid, document)
  return { shown, document }
}

function outcomeOfDeal({ Status, RetiredAt }: Deal): Row['outcome'] {
  if (ENDED.test(Status)) return Status === 'StorageDealExpired' ? 'done' : 'failed'
  return Status === SETTLED || RetiredAt !== undefined || !KNOWN.test(Status) ? 'done' : 'pending'
}

function rowOfDeal(deal: Deal): Row {
  const { Bucket, Key, DealCid, MinerId, Status, StatusMessage, CreatedAt, EstimatedExpiry } = deal
  const until = Status === SETTLED && EstimatedExpiry !== undefined ? `until ${EstimatedExpiry}` : ''
  return {
    id: DealCid,
    outcome: outcomeOfDeal(deal),
    cells: [placeOf(Bucket, Key), Status, StatusMessage ?? until, MinerId, secondsOf(CreatedAt ?? ''), DealCid],
  }
}

/** True for a job that is to make a deal, and has not. */
function isWithoutDeal(job: ShownJob, bucket: string | undefined): boolean {
  if (!job.Operation.startsWith('deal:Create') || outcomeOf(job) === 'done') return false
  return bucket === undefined || job.Resource === `/${bucket}` || job.Resource.startsWith(`/${bucket}/`)
}

function rowOfJob(job: ShownJob): Row {
  const cells = [job.Resource.replace(/^\//, ''), job.Status, progressOf(job), '', secondsOf(job.CreationTime), '']
  return { id: job.JobId, outcome: outcomeOf(job), cells }
}

function placeOf(bucket: string, key: string | undefined): string {
  return key === undefined ? bucket : `${bucket}/${key}`
}

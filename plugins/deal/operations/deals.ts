import {
  type AnyOperation,
  type Context,
  defineCall,
  PageOf,
  type PageRequest,
  S3Error,
  withRaw,
} from 'dealgate/plugin'
import { z } from 'zod'
import { DealClient } from '../deal-client.js'
import { dealDocument, documentOf, wholeSeconds } from '../deal-document.js'
import { dealEntry, dealPage, stateOf, visibility } from '../deal-entries.js'
import type { DealDeps } from '../deps.js'
import { askTask, gatewayDealOf } from '../offline/offline-client.js'
import type { DealRecord, LiveState } from '../records/deal-record.js'
import { renewals } from '../renewal-document.js'
import { ofVersion, refOf, requireBucket, SOURCE } from '../subject.js'
import { getBucketDealConfiguration, setBucketDealConfiguration } from './configuration.js'
import { createBucketDeal, createObjectDeal, listProviders, quoteBucketDeal, quoteObjectDeal } from './create-deals.js'
import { listObjectHistory } from './history.js'
import { createBucketOfflineDeal, listBucketOfflineDeals } from './offline-deals.js'
import { retrieveBucket, retrieveObject } from './retrieve.js'
import { listSchedules } from './schedules.js'
import { listSpending } from './spending.js'

const madeDeal = z.object({
  Bucket: z.string(),
  Key: z.string().optional(),
  JobId: z.string().describe('Of the job that made it.'),
  Cause: z.enum(['call', 'class', 'lifecycle', 'schedule']),
  Schedule: z.string().optional().describe('Id of the schedule that it belongs to.'),
  Due: z.string().optional().describe('When that backup was due, RFC 3339.'),
  RetiredAt: z
    .string()
    .optional()
    .describe('Since when it is no longer monitored, because newer backups replace it; RFC 3339.'),
  TaskUuid: z.string().optional().describe('Of the task by which an offline deal was made.'),
  ...dealDocument.shape,
  StatusTime: z.string().optional().describe('When the state was queried, RFC 3339.'),
})

type MadeDeal = z.output<typeof madeDeal>

/** The deal of a document, for `expand`. */
function dealOfDocument({ Bucket, Key, DealCid, TaskUuid }: Readonly<Record<string, unknown>>) {
  return {
    bucket: String(Bucket),
    ...(Key !== undefined && { key: String(Key) }),
    dealCid: String(DealCid),
    ...(TaskUuid !== undefined && { taskUuid: String(TaskUuid) }),
  }
}

/** Most records that one page reads: a filter that few deals pass must not keep the server busy. */
const MAX_READ = 10_000

const wanted = z.strictObject({
  status: z.string().max(64).optional().describe('Lists deals in this state only, such as StorageDealActive.'),
  'miner-id': z.string().max(64).optional().describe('Lists deals with this provider only.'),
  bucket: z.string().max(63).optional().describe('Lists deals for this bucket and its objects only.'),
  'ends-before': z.iso.datetime().optional().describe('Lists deals that end before this time only, RFC 3339.'),
})

type Wanted = z.output<typeof wanted>

function isWanted({ Status, MinerId, EstimatedExpiry }: MadeDeal, query: Wanted): boolean {
  if (query.status !== undefined && Status !== query.status) return false
  if (query['miner-id'] !== undefined && MinerId !== query['miner-id']) return false
  const end = query['ends-before']
  return end === undefined || (EstimatedExpiry !== undefined && Date.parse(EstimatedExpiry) < Date.parse(end))
}

const listDeals = z.object({ Deals: z.array(madeDeal).meta({ element: 'Deal' }) })

function listMadeDeals(deps: DealDeps) {
  return defineCall({
    name: 'ListDeals',
    source: SOURCE,
    summary: 'Lists the deals that were made through this server, newest first, each with its last known state.',
    access: 'signed',
    on: { method: 'GET', resource: 'service', path: '/-/deal/v1/deals' },
    query: wanted,
    result: listDeals,
    ownRules: true,
    pages: 'Deals',
    expands: dealOfDocument,
    answer: async ({ query, page }, context) => ({ Deals: await pageOfDeals(deps, context, query, page) }),
  })
}

/** Deals that are made meanwhile do not move others from one page to another. */
async function pageOfDeals(
  deps: DealDeps,
  context: Context,
  query: Wanted,
  { limit, from }: PageRequest,
): Promise<PageOf<MadeDeal>> {
  const before = from === undefined || !/^\d{1,15}$/.test(from) ? undefined : Number(from)
  const maySee = visibility(context)
  const items: MadeDeal[] = []
  let read = 0
  for await (const [place, deal] of deps.deals.newestFirst(before)) {
    if (items.length === limit || ++read > MAX_READ) return new PageOf(items, String(place + 1))
    if ((query.bucket !== undefined && deal.bucket !== query.bucket) || !(await maySee(deal))) continue
    const document = madeDealOf(deal, deal.live, deps.options.epochSeconds)
    if (isWanted(document, query)) items.push(document)
  }
  return new PageOf(items, undefined)
}

function getDeal(deps: DealDeps) {
  return defineCall({
    name: 'GetDeal',
    source: SOURCE,
    summary: 'Returns a deal that was made through this server, with its present state.',
    access: 'signed',
    on: { method: 'GET', resource: 'service', path: '/-/deal/v1/deals/{DealCid}' },
    result: madeDeal,
    root: 'Deal',
    ownRules: true,
    expands: dealOfDocument,
    async answer({ request: { params } }, context) {
      const dealCid = params.DealCid ?? ''
      const deal = (await deps.deals.get(dealCid)) ?? (await offlineDeal(deps, context, dealCid))
      // A deal that the caller may not see is reported as missing.
      if (!deal || !(await visibility(context)(deal))) throw new S3Error('NoSuchDeal', { fields: { DealCid: dealCid } })
      const live = await stateOf(deps, context, new DealClient(context.gateway, context.log), dealCid)
      return { ...madeDealOf(deal, live, deps.options.epochSeconds), ...(await renewals(deps, context)(deal)) }
    },
    async *members(context) {
      const maySee = visibility(context)
      for await (const [, deal] of deps.deals.newestFirst())
        if (deal.id === undefined && (await maySee(deal))) yield { DealCid: deal.deal.dealCid }
      for await (const [DealCid, { bucket }] of deps.tasks.deals()) if (await maySee({ bucket })) yield { DealCid }
    },
  })
}

/** A deal of a task, of which there is a record for each object at most; undefined if it is not known. */
async function offlineDeal(deps: DealDeps, context: Context, dealCid: string): Promise<DealRecord | undefined> {
  const record = await deps.tasks.ofDeal(dealCid)
  if (!record?.task || !(await visibility(context)(record))) return undefined
  const { bucket, jobId, cause, task, generation } = record
  if (!(await context.gateway.features()).offlineDeals) return undefined
  const reported = (await askTask(context.gateway, bucket, task.uuid))?.deals.find((deal) => deal.deal_cid === dealCid)
  return (
    reported && {
      ...{ bucket, jobId, cause, account: '', made: task.made, taskUuid: task.uuid },
      deal: gatewayDealOf(record, reported, task.made),
      ...(generation && { generation }),
    }
  )
}

function madeDealOf(record: DealRecord, live: LiveState | undefined, epochSeconds: number | undefined): MadeDeal {
  const { generation, retired, taskUuid } = record
  return {
    Bucket: record.bucket,
    ...(record.key !== undefined && { Key: record.key }),
    JobId: record.jobId,
    Cause: record.cause,
    ...(generation && { Schedule: generation.schedule, Due: wholeSeconds(generation.due) }),
    ...(retired !== undefined && { RetiredAt: wholeSeconds(retired) }),
    ...(taskUuid !== undefined && { TaskUuid: taskUuid }),
    ...documentOf(record.deal, live, epochSeconds),
    ...(live && { StatusTime: wholeSeconds(live.asked) }),
  }
}

const ofObject = z.object({ Bucket: z.string(), Key: z.string(), DealEntry: z.array(dealEntry) })
const ofBucket = z.object({ Bucket: z.string(), DealEntry: z.array(dealEntry) })

/** The deal of an entry, for `expand`. */
function dealOfEntry(entry: Readonly<Record<string, unknown>>, list: Readonly<Record<string, unknown>>) {
  const { DealCid } = (entry.Deal ?? {}) as { readonly DealCid?: string }
  if (DealCid === undefined) return undefined
  return { bucket: String(list.Bucket), ...(list.Key !== undefined && { key: String(list.Key) }), dealCid: DealCid }
}

const shared = { source: SOURCE, root: 'ListDealsResult', pages: 'DealEntry', expands: dealOfEntry } as const

/** A subject without deals has an empty list. */
function listObjectDeals(deps: DealDeps) {
  return defineCall({
    ...shared,
    name: 'ListObjectDeals',
    summary: 'Lists the deals for an object, oldest first, each with its state.',
    access: 'owner',
    on: { method: 'GET', resource: 'object', subresource: 'x-deal' },
    query: ofVersion,
    result: ofObject,
    async answer({ request: { bucket, key }, query, page: wanted }, context) {
      context.checks.requireKey(bucket, key, 'read')
      const ref = refOf(query)
      const version = ref && (await context.store.head(bucket, key, ref))
      const { page, raw } = await dealPage(deps, context, { bucket, key }, wanted, version)
      const result = { Bucket: bucket, Key: key, DealEntry: page }
      if (version) return result
      // The answer of a public gateway may hold deals of another key: see `isOf` in deal-client.ts.
      const { rights, policies } = context.caller?.identity ?? {}
      return rights || policies ? result : withRaw(result, raw)
    },
  })
}

/** Does not list deals for single objects of the bucket. */
function listBucketDeals(deps: DealDeps) {
  return defineCall({
    ...shared,
    name: 'ListBucketDeals',
    summary: 'Lists the deals for a bucket as a whole, oldest first, each with its state.',
    access: 'owner',
    on: { method: 'GET', resource: 'bucket', subresource: 'x-deal' },
    result: ofBucket,
    async answer({ request: { bucket }, page: wanted }, context) {
      context.checks.requireWholeBucket(bucket, 'read')
      await requireBucket(context, bucket)
      const { page, raw } = await dealPage(deps, context, { bucket }, wanted)
      return withRaw({ Bucket: bucket, DealEntry: page }, raw)
    },
  })
}

export function dealOperations(deps: DealDeps): readonly AnyOperation[] {
  return [
    createObjectDeal(deps),
    createBucketDeal(deps),
    createBucketOfflineDeal(deps),
    listObjectDeals(deps),
    listBucketDeals(deps),
    listObjectHistory(deps),
    listBucketOfflineDeals(deps),
    retrieveObject(deps),
    retrieveBucket(),
    quoteObjectDeal(deps),
    quoteBucketDeal(deps),
    getBucketDealConfiguration(),
    setBucketDealConfiguration(deps),
    listMadeDeals(deps),
    getDeal(deps),
    listProviders(deps),
    listSchedules(deps),
    listSpending(deps),
  ]
}

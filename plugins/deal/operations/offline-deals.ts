import { warningHeaders } from 'dealgate/paid'
import { type Context, defineCall, S3Error } from 'dealgate/plugin'
import { z } from 'zod'
import { configurationOf } from '../configuration.js'
import { wholeSeconds } from '../deal-document.js'
import type { DealDeps } from '../deps.js'
import { OFFLINE_DEAL, type OfflineDealInput } from '../jobs/inputs.js'
import { askTask, type TaskDeal } from '../offline/offline-client.js'
import { offlineDealResult } from '../offline/offline-job.js'
import type { TaskRecord } from '../offline/task-records.js'
import { requireBucket, requireContent, SOURCE } from '../subject.js'
import { offlineMembers, readOfflineTerms } from '../terms/offline-terms.js'
import { publicWarningOf } from '../terms/warnings.js'

const offlineRequest = z.strictObject({
  ...offlineMembers,
  Prefix: z.string().max(1024).optional().describe('Only objects whose keys begin with this text. Default: all.'),
  Force: z
    .boolean()
    .optional()
    .describe('Make another offline deal although the same one was requested within the last minute.'),
})

export function createBucketOfflineDeal(deps: DealDeps) {
  return defineCall({
    name: 'CreateBucketOfflineDeal',
    source: SOURCE,
    summary: 'Makes an offline deal for the objects of a bucket as they are now: posts a task on the task platform.',
    access: 'owner',
    on: { method: 'POST', resource: 'bucket', subresource: 'x-deal-offline' },
    body: offlineRequest,
    aliases: { Duration: 'DurationEpochs', BidMode: 'AutoBid' },
    result: offlineDealResult,
    root: 'OfflineDealResult',
    job: OFFLINE_DEAL,
    spends: true,
    async order({ request: { bucket, signal }, body: { Prefix: prefix, Force: _, ...stated } }, context) {
      const configuration = await configurationOf(context, bucket)
      const terms = readOfflineTerms([stated, configuration?.OfflineTerms], bucket)
      await requireContent(context, bucket, prefix)
      const headers = warningHeaders(await publicWarningOf(deps, context, { bucket, prefix, signal }))
      const input: OfflineDealInput = { bucket, ...(prefix && { prefix }), terms, cause: 'call' }
      return { resource: `/${bucket}`, input, headers }
    },
  })
}

const taskDeal = z.object({
  DealId: z.string(),
  DealCid: z.string(),
  Status: z.string().describe('State of the deal on the task platform, such as DealActive.'),
  Note: z.string(),
  MinerId: z.string(),
  DataCid: z.string().describe('Root CID of what was packed.'),
  PieceCid: z.string(),
  PieceSize: z.number().int().describe('Bytes, padded.'),
  StartEpoch: z.number().int().optional(),
  EndEpoch: z.number().int().optional(),
})

const offlineDeal = z.object({
  ...offlineDealResult.shape,
  Cause: z.enum(['call', 'class', 'schedule']),
  CreatedAt: z.string().describe('RFC 3339.'),
  TaskStatus: z.string().describe('State of the task; Recorded if the gateway does not report it.'),
  Deals: z.array(taskDeal).meta({ element: 'Deal' }),
})
type OfflineDeal = z.output<typeof offlineDeal>

export function listBucketOfflineDeals(deps: DealDeps) {
  return defineCall({
    name: 'ListBucketOfflineDeals',
    source: SOURCE,
    summary:
      'Lists the offline deals of a bucket that were made through this server, newest first, each with its state.',
    access: 'owner',
    on: { method: 'GET', resource: 'bucket', subresource: 'x-deal-offline' },
    result: z.object({ Bucket: z.string(), OfflineDeal: z.array(offlineDeal) }),
    pages: 'OfflineDeal',
    async answer({ request: { bucket } }, context) {
      context.checks.requireWholeBucket(bucket, 'read')
      await requireBucket(context, bucket)
      return { Bucket: bucket, OfflineDeal: eachDeal(deps, context, bucket) }
    },
  })
}

async function* eachDeal(deps: DealDeps, context: Context, bucket: string): AsyncGenerator<OfflineDeal, void> {
  for (const record of await deps.tasks.of(bucket)) if (record.task) yield await documentOf(deps, context, record)
}

async function documentOf(
  deps: DealDeps,
  context: Context,
  { bucket, prefix, jobId, cause, task }: TaskRecord,
): Promise<OfflineDeal> {
  const { uuid = '', taskName = '', fileName = '', message = '', made = 0 } = task ?? {}
  const live = await liveState(context, bucket, uuid)
  // GetDeal finds the deals that a client has learned of here.
  for (const { deal_cid } of live?.deals ?? []) await deps.tasks.know(deal_cid, jobId)
  return {
    Bucket: bucket,
    ...(prefix !== undefined && { Prefix: prefix }),
    JobId: jobId,
    Task: { TaskName: taskName, TaskFileName: fileName, TaskUuid: uuid },
    Message: message,
    Cause: cause,
    CreatedAt: wholeSeconds(made),
    TaskStatus: live?.status ?? 'Recorded',
    Deals: (live?.deals ?? []).map(dealOf),
  }
}

/** Undefined when the gateway does not report it now: the list is then still of use. */
async function liveState({ gateway, log }: Context, bucket: string, uuid: string) {
  if (uuid === '' || !(await gateway.features()).offlineDeals) return undefined
  return askTask(gateway, bucket, uuid).catch((err) => {
    if (!(err instanceof S3Error)) throw err
    log.warn({ err, bucket, task: uuid }, 'the state of an offline deal could not be queried')
    return undefined
  })
}

function dealOf(deal: TaskDeal): z.output<typeof taskDeal> {
  return {
    DealId: deal.deal_id,
    DealCid: deal.deal_cid,
    Status: deal.status,
    Note: deal.note,
    MinerId: deal.miner_fid,
    DataCid: deal.payload_cid,
    PieceCid: deal.piece_cid,
    PieceSize: deal.piece_size,
    ...(deal.start_epoch !== undefined && { StartEpoch: deal.start_epoch }),
    ...(deal.end_epoch !== undefined && { EndEpoch: deal.end_epoch }),
  }
}

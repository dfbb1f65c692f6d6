import { type Context, defineCall, type Job } from 'dealgate/plugin'
import pMap from 'p-map'
import { z } from 'zod'
import type { PayDeps } from '../deps.js'
import { dealLog, type OfflineDeal, payment, type ShownUpload } from '../documents.js'
import { billOf } from '../expand.js'
import { apiPath, service } from '../service.js'
import type { MadeUpload } from '../upload/made-uploads.js'
import type { UploadInput } from '../upload/reconcile.js'
import { findLive } from './live-uploads.js'
import { askPayment } from './payment.js'
import { type ClientRequest, SOURCE, sendAsWallet } from './send.js'

/** What can happen to an object on its way through a paid upload. */
const EVENTS = [
  'UploadRequested',
  'UploadFailed',
  'Uploaded',
  'PaymentLocked',
  'UploadDealMade',
  'UploadDealState',
  'PaymentUnlocked',
  'PaymentRefunded',
] as const

const payEvent = z.object({
  Event: z.enum(EVENTS),
  Time: z.string().describe('RFC 3339.'),
  State: z
    .string()
    .optional()
    .describe('Of a deal, or of the upload as it is now, or Unseen, as in ListObjectUploads.'),
  Code: z.string().optional().describe('Error code of a failure.'),
  Message: z.string().optional(),
  SourceFileUploadId: z.number().int().optional(),
  PayloadCid: z.string().optional().describe('CID of the content.'),
  DurationDays: z.number().int().optional(),
  Amount: z.string().optional().describe('Digits, in the smallest unit of the token.'),
  TokenName: z.string().optional(),
  TxHash: z.string().optional(),
  Until: z.string().optional().describe('Until when the payment is locked; RFC 3339.'),
  MinerId: z.string().optional(),
  DealCid: z.string().optional(),
  JobId: z.string().optional(),
  JobStatus: z.string().optional().describe('Present status of the job, while it is on record.'),
  Phase: z.string().optional().describe('What the job is doing or waiting for.'),
  EarlierVersion: z.boolean().optional().describe('It concerns an object that this one has replaced.'),
})

type PayEvent = z.output<typeof payEvent>

/** An event before it is shown; `time` in ms since 1970. */
type ReportedEvent = Omit<PayEvent, 'Time' | 'EarlierVersion'> & { readonly time: number }

/** Newest uploads of an object whose history is read. */
const UPLOADS = 20

/** Uploads that the service is asked about at the same time; each takes several calls. */
const CONCURRENCY = 3

export function listObjectPayHistory(deps: PayDeps) {
  return defineCall({
    name: 'ListObjectPayHistory',
    source: SOURCE,
    summary:
      'Lists what happened to the paid uploads of an object, oldest first: requested, failed, paid, their deals, unlocked, refunded.',
    access: 'owner',
    on: { method: 'GET', resource: 'object', subresource: 'x-pay-history' },
    result: z.object({ Bucket: z.string(), Key: z.string(), History: z.array(payEvent).meta({ element: 'Event' }) }),
    root: 'PayHistory',
    pages: 'History',
    async answer({ request }, context) {
      const { bucket, key } = request
      context.checks.requireKey(bucket, key, 'read')
      const [object, creationTime] = await Promise.all([
        context.store.find(bucket, key),
        context.creationTimes.now(bucket),
      ])
      const made = (await deps.made.ofObject(bucket, key, creationTime)).slice(0, UPLOADS)
      const jobs = await jobsOf(deps, context, request, object?.revision)
      const live = await findLive(deps, context, request, made)
      const ofUploads = await pMap(made, (one) => ofUpload(deps, context, request, one, live.get(one.uploadId)), {
        concurrency: CONCURRENCY,
      })
      const ofJobs = jobs.map((job) => ({
        revision: job.input.stamp,
        events: ofJob(job, made, mayKnow(context, job)),
      }))
      return { Bucket: bucket, Key: key, History: shown([...ofUploads, ...ofJobs], object?.revision) }
    },
  })
}

interface UploadEvents {
  readonly revision: string
  readonly events: readonly ReportedEvent[]
}

/**
 * The jobs that are on record. They count for the present object, or for who requested them: the bucket may have been
 * another account's then.
 */
async function jobsOf(
  deps: PayDeps,
  { jobs, caller }: Context,
  { bucket, key }: { readonly bucket: string; readonly key: string },
  revision: string | undefined,
): Promise<readonly Job<UploadInput>[]> {
  const ids = (await deps.made.jobIdsOf(bucket, key)).slice(-UPLOADS)
  const found = await Promise.all(ids.map((id) => jobs.get(id)))
  return (found as readonly (Job<UploadInput> | undefined)[])
    .filter((job) => job !== undefined)
    .filter(({ input, accessKeyId }) => input.stamp === revision || accessKeyId === caller?.identity.accessKeyId)
}

/** Why something failed may state what is spent, which is not for every key pair that may read the object. */
function mayKnow({ caller }: Context, { accessKeyId }: Job): boolean {
  const identity = caller?.identity
  const { rights, policies, session } = identity ?? {}
  return (!rights && !policies && !session?.policy) || accessKeyId === identity?.accessKeyId
}

function ofJob(job: Job<UploadInput>, made: readonly MadeUpload[], whole: boolean): ReportedEvent[] {
  const { id, status, created, updated, failure, input, progress } = job
  const known = { JobId: id, JobStatus: status, ...(progress.phase && { Phase: progress.phase }) }
  const requested = { Event: 'UploadRequested', time: created, DurationDays: input.days } as const
  if (!failure) return [{ ...requested, ...(made.some(({ jobId }) => jobId === id) ? { JobId: id } : known) }]
  const failed = { Event: 'UploadFailed', time: updated, Code: failure.code, ...known } as const
  return [
    { ...requested, JobId: id },
    { ...failed, ...(whole && { Message: failure.message }) },
  ]
}

async function ofUpload(
  deps: PayDeps,
  context: Context,
  request: ClientRequest,
  made: MadeUpload,
  live: ShownUpload | undefined,
): Promise<UploadEvents> {
  const SourceFileUploadId = made.uploadId
  const uploaded: ReportedEvent = {
    ...{ Event: 'Uploaded', time: made.made, JobId: made.jobId, SourceFileUploadId, PayloadCid: made.cid },
    State: live?.Status ?? 'Unseen',
  }
  if (!live) return { revision: made.revision, events: [uploaded] }
  const paid = service.dataOf(await askPayment(deps, context, request, made.uploadId), payment.read)
  const bill = paid.PayTxHash === '' ? undefined : await billOf(deps, context, request, made, paid.PayTxHash)
  const ofDeals = await Promise.all(live.OfflineDeals.map((deal) => ofDeal(deps, context, request, deal)))
  const events = [uploaded, ...ofDeals.flat()].map((event) => ({ ...event, SourceFileUploadId }))
  if (!bill) return { revision: made.revision, events }
  const common = { SourceFileUploadId, TokenName: bill.TokenName }
  events.push({
    ...{ ...common, Event: 'PaymentLocked', time: bill.PayAt * 1000, Amount: bill.PayAmount, TxHash: bill.PayTxHash },
    ...(bill.Deadline > 0 && { Until: seconds(bill.Deadline * 1000) }),
  })
  if (bill.UnlockAt > 0) {
    const TxHash = live.OfflineDeals.find(({ TxHashUnlock }) => TxHashUnlock)?.TxHashUnlock ?? undefined
    events.push({
      ...{ ...common, Event: 'PaymentUnlocked', time: bill.UnlockAt * 1000, Amount: bill.UnlockAmount },
      ...(TxHash !== undefined && { TxHash }),
    })
  }
  // No service tells when it gives a payment back: at its deadline, or before.
  if (live.Status === 'Refunded')
    events.push({ ...common, Event: 'PaymentRefunded', time: Math.min(bill.Deadline * 1000, deps.host.now()) })
  return { revision: made.revision, events }
}

async function ofDeal(
  deps: PayDeps,
  context: Context,
  request: ClientRequest,
  deal: OfflineDeal,
): Promise<readonly ReportedEvent[]> {
  const path = apiPath('storage', 'deal', 'log', String(deal.Id))
  const answer = await sendAsWallet(deps, context, request, {}, () => ({ method: 'GET', path }))
  const common = { MinerId: deal.MinerFid, ...(deal.DealCid !== '' && { DealCid: deal.DealCid }) }
  const states = service.dataOf(answer, dealLog.read).Entries.map(
    ({ OnChainStatus, OnChainMessage, CreateAt }): ReportedEvent => ({
      ...{ ...common, Event: 'UploadDealState', time: CreateAt * 1000, State: OnChainStatus },
      ...(OnChainMessage !== '' && { Message: OnChainMessage }),
    }),
  )
  return [{ ...common, Event: 'UploadDealMade', time: deal.CreateAt * 1000 }, ...states]
}

function shown(reported: readonly UploadEvents[], present: string | undefined): PayEvent[] {
  return (
    reported
      .flatMap(({ revision, events }) => events.map((event) => ({ ...event, earlier: revision !== present })))
      // Services tell whole seconds: what has the same one is in the order in which it can happen.
      .sort((one, other) => second(one) - second(other) || EVENTS.indexOf(one.Event) - EVENTS.indexOf(other.Event))
      .map(({ time, earlier, ...event }) => ({
        ...event,
        Time: new Date(time).toISOString(),
        ...(earlier && { EarlierVersion: true }),
      }))
  )
}

function second({ time }: ReportedEvent): number {
  return Math.floor(time / 1000)
}

function seconds(time: number): string {
  return `${new Date(time).toISOString().slice(0, 19)}Z`
}

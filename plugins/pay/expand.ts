import { type Context, type Expansion, type ExpansionSubject, S3Error } from 'dealgate/plugin'
import { z } from 'zod'
import type { PayDeps } from './deps.js'
import { bill, detail, type OfflineDeal, offlineDeal, payment, type ShownUpload } from './documents.js'
import { askDetail } from './operations/deals.js'
import { pageOfBills } from './operations/lists.js'
import { findLive } from './operations/live-uploads.js'
import { askPayment, noSuchUpload } from './operations/payment.js'
import type { ClientRequest } from './operations/send.js'
import { service } from './service.js'
import type { MadeUpload } from './upload/made-uploads.js'

/** Newest payments of a wallet for files of one name that are searched. */
const BILLS = 1000

const expandedPay = z.object({
  SourceFileUploadId: z.number().int(),
  PayloadCid: z.string().describe('CID of the content.'),
  WCid: z.string(),
  IpfsUrl: z.string(),
  DurationDays: z.number().int(),
  Status: z.string().describe('Of the upload now; Unseen if the service does not show it to the caller.'),
  Payment: payment.shown.optional(),
  Bill: bill.shown.optional().describe('The payment as billing lists it, with what was unlocked and the deadline.'),
  Deals: z
    .array(
      offlineDeal.shown.extend({
        Unlocked: z.boolean().describe('Whether the provider has been paid.'),
        Height: z.number().int().describe('Epoch of the chain now.'),
        StartHeight: z.number().int(),
        EndHeight: z.number().int().describe('Epoch at which the deal expires.'),
      }),
    )
    .meta({ element: 'Deal' }),
})

/** For calls of the service that no request carries. */
const NO_HEADERS = { headers: {} }

/** `expand=pay`: the upload of the object to the content-addressed network, with its payment and its deals. */
export function payExpansion(deps: PayDeps): Expansion {
  return {
    name: 'pay',
    member: 'Pay',
    summary: 'The newest upload of the object by the storage payment API, with its payment, its unlocks and its deals.',
    result: expandedPay,
    async join(deals, context) {
      const made = await Promise.all(deals.map((deal) => madeOf(deps, context, deal)))
      const all = [...new Map(made.flatMap((one) => (one ? [[one.jobId, one] as const] : []))).values()]
      if (all.length === 0) return made.map(() => undefined)
      const request = { ...NO_HEADERS, signal: AbortSignal.timeout(context.limits.pluginDeadlineMs) }
      const live = await findLive(deps, context, request, all)
      const shown = new Map(
        await Promise.all(
          all.map(
            async (one) => [one.jobId, await joined(deps, context, request, one, live.get(one.uploadId))] as const,
          ),
        ),
      )
      return made.map((one) => one && shown.get(one.jobId))
    },
  }
}

/** The upload that is meant: that of the job, or the newest of the object as it is now. */
async function madeOf(
  deps: PayDeps,
  { creationTimes, checks, store }: Context,
  { bucket, key, jobId }: ExpansionSubject,
): Promise<MadeUpload | undefined> {
  if (key === undefined) return undefined
  try {
    checks.requireKey(bucket, key, 'read')
    await checks.requireOwner(bucket)
  } catch (error) {
    if (error instanceof S3Error && ['AccessDenied', 'NoSuchBucket'].includes(error.code)) return undefined
    throw error
  }
  const own = jobId === undefined ? undefined : await deps.made.objectOf(jobId)
  if (own) return own
  const [object, creationTime] = await Promise.all([store.find(bucket, key), creationTimes.now(bucket)])
  const uploads = await deps.made.ofObject(bucket, key, creationTime)
  return uploads.find(({ revision }) => revision === object?.revision)
}

async function joined(
  deps: PayDeps,
  context: Context,
  request: ClientRequest,
  made: MadeUpload,
  live: ShownUpload | undefined,
): Promise<z.output<typeof expandedPay>> {
  const shown = {
    SourceFileUploadId: made.uploadId,
    PayloadCid: made.cid,
    WCid: made.wCid,
    IpfsUrl: made.url,
    DurationDays: made.days,
  }
  if (!live) return { ...shown, Status: 'Unseen', Deals: [] }
  const [paid, deals] = await Promise.all([
    askPayment(deps, context, request, made.uploadId).then((answer) => service.dataOf(answer, payment.read)),
    Promise.all(live.OfflineDeals.map((deal) => dealOf(deps, context, request, made, deal))),
  ])
  const billed = paid.PayTxHash === '' ? undefined : await billOf(deps, context, request, made, paid.PayTxHash)
  return { ...shown, Status: live.Status, Payment: paid, ...(billed && { Bill: billed }), Deals: deals }
}

async function dealOf(
  deps: PayDeps,
  context: Context,
  request: ClientRequest,
  { uploadId }: MadeUpload,
  deal: OfflineDeal,
) {
  const named = { dealId: String(deal.DealId), uploadId }
  const answer = await askDetail(deps, context, request, named, () => noSuchUpload(uploadId))
  const { Unlocked, Height, StartHeight, EndHeight } = service.dataOf(answer, detail.read).Deal
  return { ...deal, Unlocked, Height, StartHeight, EndHeight }
}

/** The payment of an upload as billing lists it. */
export async function billOf(
  deps: PayDeps,
  context: Context,
  request: ClientRequest,
  { name, wallet }: MadeUpload,
  hash: string,
) {
  const named = (await deps.mode()) === 'open' ? wallet : undefined
  const query = { 'file-name': name, 'wallet-address': named, 'order-by': 'pay_at' }
  const { items } = await pageOfBills(deps, context, request, query, { page_size: BILLS, page_number: 1 })
  return items.find(({ PayTxHash }) => PayTxHash === hash)
}

import { type Context, S3Error } from 'dealgate/plugin'
import { z } from 'zod'
import { type GatewayDeal, type GatewayDealState, instantOf, timeOf } from './deal-answers.js'
import type { DealClient } from './deal-client.js'
import type { DealDeps } from './deps.js'
import { type DealRecord, holds, type LiveState } from './records/deal-record.js'
import { reportedAmount } from './terms/terms.js'

export const dealDocument = z.object({
  DealCid: z.string().describe('CID of the deal proposal.'),
  DataCid: z.string().describe('Root CID of what was packed.'),
  PieceCid: z.string().optional(),
  PieceSize: z.number().int().optional().describe('Bytes, padded.'),
  MinerId: z.string(),
  WalletAddress: z.string(),
  Price: reportedAmount.describe('Decimal, as text: fil per epoch for the whole piece.'),
  DurationEpochs: z.number().int().optional(),
  VerifiedDeal: z.boolean(),
  FastRetrieval: z.boolean(),
  SourcePath: z.string().describe('Where the gateway had the data.'),
  TimeStamp: z.string().describe('When the deal was made, in the text and unit of the gateway.'),
  CreatedAt: z.string().optional().describe('The same in RFC 3339.'),
  StartEpoch: z.number().int().optional(),
  EndEpoch: z.number().int().optional(),
  EstimatedExpiry: z.string().optional().describe('RFC 3339.'),
  Status: z
    .string()
    .describe(
      'State of the deal on the network, such as StorageDealActive; Recorded if the gateway does not report it.',
    ),
  StatusMessage: z.string().optional(),
  LockedUntil: z
    .string()
    .optional()
    .describe('End of the retention of the version that it holds, while that lasts; RFC 3339.'),
  LegalHold: z.boolean().optional().describe('The version that it holds is under a legal hold.'),
  RenewUntil: z
    .string()
    .optional()
    .describe(
      'Until when other deals follow this one: RFC 3339, for the retention of a version whose bytes are left to deals; `LegalHold`, while there is one; `Removal` of the object, where the bucket has RenewBeforeDays. Absent: none follows, or one has.',
    ),
})

type DealDocument = z.output<typeof dealDocument>

/** Facts of a deal that the gateway's history does not hold. */
type KnownOfDeal = Partial<LiveState>

/** @param epochSeconds length of an epoch, if known */
export function documentOf(deal: GatewayDeal, known: KnownOfDeal = {}, epochSeconds?: number): DealDocument {
  const created = instantOf(deal.timeStamp)
  const duration = /^\d{1,12}$/.test(deal.duration) ? Number(deal.duration) : undefined
  const expires =
    known.expires ??
    (created && duration && epochSeconds ? Number(created / 1000n) + duration * epochSeconds * 1000 : undefined)
  return {
    DealCid: deal.dealCid,
    DataCid: deal.dataCid,
    ...(known.pieceCid && { PieceCid: known.pieceCid }),
    ...(known.pieceSize && { PieceSize: known.pieceSize }),
    MinerId: deal.minerId,
    WalletAddress: deal.walletAddress,
    Price: deal.price,
    ...(duration !== undefined && { DurationEpochs: duration }),
    VerifiedDeal: deal.verifiedDeal.toLowerCase() === 'true',
    FastRetrieval: deal.fastRetrieval.toLowerCase() === 'true',
    SourcePath: deal.filename,
    TimeStamp: deal.timeStamp,
    ...(created !== undefined && { CreatedAt: timeOf(deal.timeStamp) }),
    ...(known.startEpoch !== undefined && { StartEpoch: known.startEpoch }),
    ...(known.endEpoch !== undefined && { EndEpoch: known.endEpoch }),
    ...(expires !== undefined && isInstant(expires) && { EstimatedExpiry: wholeSeconds(expires) }),
    Status: known.state ?? 'Recorded',
    ...(known.message && { StatusMessage: known.message }),
  }
}

export function wholeSeconds(time: number): string {
  return `${new Date(time).toISOString().slice(0, 19)}Z`
}

function isInstant(time: number): boolean {
  return Math.abs(time) <= 8.64e15
}

/**
 * The facts that GET and HEAD report as x-amz-meta-<name>: those of the newest deal that holds the object, or of the
 * newest at all, and the number of deals.
 * @param deals for this very object, oldest first; at least one
 */
function factsOf(deals: readonly DealRecord[], epochSeconds: number | undefined): Record<string, string> {
  const reported = deals.findLast(holds) ?? deals.at(-1)
  if (!reported) return {}
  const { deal, live } = reported
  const document = documentOf(deal, live, epochSeconds)
  return {
    ...(deal.dataCid && { cid: deal.dataCid }),
    'deal-cid': deal.dealCid,
    'deal-count': String(deals.length),
    'deal-provider': deal.minerId,
    'deal-status': document.Status,
    ...(reported.taskUuid && { 'task-uuid': reported.taskUuid }),
    ...(document.EstimatedExpiry && { 'deal-expiry': document.EstimatedExpiry }),
  }
}

const OURS = ['cid', 'deal-cid', 'deal-count', 'deal-provider', 'deal-status', 'deal-expiry']

/** Updates the facts of the object, if it is still the one that the deal holds. */
export async function annotateObject(deps: DealDeps, context: Context, record: DealRecord): Promise<void> {
  const { bucket, key, revision } = record
  if (key === undefined || revision === undefined) return
  const deals = await deps.deals.ofVersion({ bucket, key, revision })
  const facts = factsOf(deals, deps.options.epochSeconds)
  const lost = !deals.some(holds)
  const annotate = ({ store }: Context) =>
    store.annotate(bucket, key, revision, (archive) => {
      const others = Object.entries(archive?.facts ?? {}).filter(([name]) => !OURS.includes(name))
      const { failed: _, ...reported } = archive ?? {}
      return { ...reported, ...(lost && { failed: true as const }), facts: { ...Object.fromEntries(others), ...facts } }
    })
  try {
    await annotate(context)
  } catch (error) {
    // A caller who may make deals for an object need not be able to write it.
    if (!(error instanceof S3Error) || error.code !== 'AccessDenied') throw error
    await annotate(deps.host.own)
  }
}

/**
 * Queries the present state of a deal; undefined when the gateway does not know the deal.
 * @param now ms since 1970
 * @param before the state of the query before: its expiry is kept unless it has really changed
 */
export async function askState(
  client: DealClient,
  dealCid: string,
  now: number,
  epochSeconds: number | undefined,
  before: LiveState | undefined,
): Promise<LiveState | undefined> {
  const reported = await client.state(dealCid)
  return (
    reported && steady(liveOf(reported, now, epochSeconds), before, (reported.epochSeconds ?? epochSeconds ?? 0) * 1000)
  )
}

/**
 * Keeps the expiry of the query before if it differs by no more than rounding: the network counts whole epochs and the
 * answer takes time, so that an expiry computed from the current epoch differs by up to an epoch and the time of a
 * call.
 * @param epochMs length of an epoch
 */
export function steady(live: LiveState, before: LiveState | undefined, epochMs: number): LiveState {
  if (live.expires === undefined || before?.expires === undefined || live.endEpoch !== before.endEpoch) return live
  const same = Math.abs(live.expires - before.expires) <= 2 * epochMs + MAX_ANSWER_MS
  return same ? { ...live, expires: before.expires } : live
}

/** Longest time that an answer is assumed to take, ms. */
const MAX_ANSWER_MS = 5000

function liveOf(reported: GatewayDealState, now: number, configured: number | undefined): LiveState {
  const { startEpoch, endEpoch, epoch } = reported
  const epochSeconds = reported.epochSeconds ?? configured
  const span = (from: number | undefined, to: number | undefined) =>
    from === undefined || to === undefined || epochSeconds === undefined
      ? undefined
      : safe((to - from) * epochSeconds * 1000)
  const left = span(epoch, endEpoch)
  const lasts = span(startEpoch, endEpoch)
  return {
    state: reported.state,
    asked: now,
    ...(reported.message && { message: reported.message }),
    ...(reported.pieceCid && { pieceCid: reported.pieceCid }),
    ...(reported.pieceSize && { pieceSize: reported.pieceSize }),
    ...(startEpoch !== undefined && { startEpoch }),
    ...(endEpoch !== undefined && { endEpoch }),
    ...(left !== undefined && { expires: now + left }),
    ...(lasts !== undefined && { lasts }),
  }
}

/** Undefined for a span that is too long for a date. */
function safe(ms: number): number | undefined {
  return Math.abs(ms) <= 4e15 ? Math.round(ms) : undefined
}

import { z } from 'zod'
import type { Context } from '../../src/context.js'
import { S3Error } from '../../src/errors/s3-error.js'
import { PageOf, type PageRequest } from '../../src/extension/call.js'
import { inOrder } from '../../src/operations/common/in-order.js'
import { DealClient, type DealSubject, type HistoryEntry } from './deal-client.js'
import { dealDocument, documentOf } from './deal-document.js'
import { askState } from './live-state.js'
import type { DealParts } from './parts.js'
import { type DealRecord, isFinal, type LiveState } from './records/deal-record.js'

/** A deal of a history, in the envelope that the gateway keeps of it. */
export const dealEntry = z.object({
  Status: z.string(),
  Message: z.string(),
  Deal: dealDocument.optional(),
})
export type DealEntry = z.output<typeof dealEntry>

/** Deals whose state is asked for at once. */
const AT_ONCE = 8

export interface DealPage {
  readonly page: PageOf<DealEntry>
  /** What the gateway has said, for those who may see all of it. */
  readonly raw: unknown
}

/** Deals about the subject, oldest first, with their state as the network tells it now. */
export async function dealPage(
  parts: DealParts,
  context: Context,
  subject: DealSubject,
  { limit, from }: PageRequest,
): Promise<DealPage> {
  const client = new DealClient(context.gateway, context.log)
  const history = await client.history(subject)
  // A gateway that cannot tell whether there are any may have forgotten those that were made through here.
  const entries = history.entries ?? (await parts.deals.of(subject.bucket, subject.key)).map(entryOf)
  const start = from !== undefined && /^\d{1,9}$/.test(from) ? Number(from) : 0
  const end = start + limit
  const items = await inOrder(entries.slice(start, end), AT_ONCE, (entry) => withState(parts, context, client, entry))
  return { page: new PageOf(items, end < entries.length ? String(end) : undefined), raw: history.raw }
}

async function withState(
  parts: DealParts,
  context: Context,
  client: DealClient,
  { status, message, data }: HistoryEntry,
): Promise<DealEntry> {
  if (!data) return { Status: status, Message: message }
  const state = await stateOf(parts, context, client, data.dealCid)
  return { Status: status, Message: message, Deal: documentOf(data, state, parts.options.epochSeconds) }
}

function entryOf({ deal }: DealRecord): HistoryEntry {
  return { status: 'success', message: '', data: deal }
}

/** What the network says of a deal, asked now unless it was a moment ago or can change no more; undefined where nobody can tell. */
export async function stateOf(
  parts: DealParts,
  { gateway, log }: Pick<Context, 'gateway' | 'log'>,
  client: DealClient,
  dealCid: string,
): Promise<LiveState | undefined> {
  const record = await parts.deals.get(dealCid)
  const now = parts.host.now()
  if (record?.live && (isFinal(record.live.state) || record.live.asked > now - FRESH_MS)) return record.live
  try {
    if (dealCid === '' || !(await gateway.features()).dealStatus) return record?.live
    return (await askState(client, dealCid, now, parts.options.epochSeconds)) ?? record?.live
  } catch (err) {
    if (!(err instanceof S3Error)) throw err
    log.warn({ err, deal: dealCid }, 'the state of a deal could not be asked for')
    return record?.live
  }
}

/** A state that was told within so many ms is as good as new. */
const FRESH_MS = 1000

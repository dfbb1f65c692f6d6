import { type Context, PageOf, type PageRequest, S3Error } from 'dealgate/plugin'
import pMap from 'p-map'
import { z } from 'zod'
import type { HistoryEntry } from './deal-answers.js'
import { DealClient, type DealSubject, type History } from './deal-client.js'
import { askState, dealDocument, documentOf } from './deal-document.js'
import type { DealDeps } from './deps.js'
import { type DealRecord, isFinal, type LiveState } from './records/deal-record.js'
import type { Version } from './records/deal-records.js'
import { renewals } from './renewal-document.js'

export const dealEntry = z.object({
  Status: z.string(),
  Message: z.string(),
  Deal: dealDocument.optional(),
})

type DealEntry = z.output<typeof dealEntry>

/** Most state queries at the same time. */
const MAX_CONCURRENCY = 8

interface DealPage {
  readonly page: PageOf<DealEntry>
  /** The gateway's answer, for callers who may see all of it. */
  readonly raw: unknown
}

const NO_HISTORY: History = { entries: undefined, raw: undefined }

/**
 * Deals for the subject, oldest first, with their present state on the network.
 * @param version only its deals that were made through this server
 */
export async function dealPage(
  deps: DealDeps,
  context: Context,
  subject: DealSubject,
  { limit, from }: PageRequest,
  version?: Version,
): Promise<DealPage> {
  const client = new DealClient(context.gateway, context.log)
  // The gateway lists deals by key.
  const history = version ? NO_HISTORY : await client.history(subject)
  // A gateway that cannot tell whether there are any may have lost the record of deals that were made through this
  // server.
  const { deals } = deps
  const recorded = () => (version ? deals.ofVersion(version) : deals.of(subject.bucket, subject.key))
  const entries = history.entries ?? (await recorded()).map(entryOf)
  const start = from !== undefined && /^\d{1,9}$/.test(from) ? Number(from) : 0
  const end = start + limit
  const renewalOf = renewals(deps, context)
  const items = await pMap(entries.slice(start, end), (entry) => withState(deps, context, client, entry, renewalOf), {
    concurrency: MAX_CONCURRENCY,
  })
  return { page: new PageOf(items, end < entries.length ? String(end) : undefined), raw: history.raw }
}

async function withState(
  deps: DealDeps,
  context: Context,
  client: DealClient,
  { status, message, data }: HistoryEntry,
  renewalOf: ReturnType<typeof renewals>,
): Promise<DealEntry> {
  if (!data) return { Status: status, Message: message }
  const state = await stateOf(deps, context, client, data.dealCid)
  const record = await deps.deals.get(data.dealCid)
  const renewal = record && (await renewalOf(record))
  return {
    Status: status,
    Message: message,
    Deal: { ...documentOf(data, state, deps.options.epochSeconds), ...renewal },
  }
}

function entryOf({ deal }: DealRecord): HistoryEntry {
  return { status: 'success', message: '', data: deal }
}

/** State of a deal on the network: queried now unless it is fresh or final. Undefined when it is not known. */
export async function stateOf(
  deps: DealDeps,
  { gateway, log }: Pick<Context, 'gateway' | 'log'>,
  client: DealClient,
  dealCid: string,
): Promise<LiveState | undefined> {
  const record = await deps.deals.get(dealCid)
  const now = deps.host.now()
  if (record?.live && (isFinal(record.live.state) || record.live.asked > now - FRESH_MS)) return record.live
  try {
    if (dealCid === '' || !(await gateway.features()).dealStatus) return record?.live
    return (await askState(client, dealCid, now, deps.options.epochSeconds, record?.live)) ?? record?.live
  } catch (err) {
    if (!(err instanceof S3Error)) throw err
    log.warn({ err, deal: dealCid }, 'the state of a deal could not be queried')
    return record?.live
  }
}

/** Age up to which a state is not queried again, ms. */
const FRESH_MS = 1000

type DealScope = Pick<DealRecord, 'bucket' | 'key'> & Partial<Pick<DealRecord, 'account'>>

/**
 * Returns a check for the deals that the caller may see: those of buckets and keys that it may read, made by the
 * caller's gateway account or in buckets that this account sees.
 */
export function visibility(context: Context): (deal: DealScope) => Promise<boolean> {
  const seen = new Map<string, Promise<boolean>>()
  const account = context.caller?.identity.account?.accessKey ?? ''
  const seesBucket = (bucket: string) => {
    const known = seen.get(bucket) ?? seesBucketOf(context, bucket)
    seen.set(bucket, known)
    return known
  }
  return async (deal) => mayRead(context, deal) && (deal.account === account || (await seesBucket(deal.bucket)))
}

/** The gateway refuses the bucket of another account: its deals are then not visible, like those of no bucket. */
async function seesBucketOf({ gateway }: Context, bucket: string): Promise<boolean> {
  try {
    return await gateway.bucketExists(bucket)
  } catch (error) {
    if (error instanceof S3Error && error.code === 'AccessDenied') return false
    throw error
  }
}

function mayRead(context: Context, { bucket, key }: DealScope): boolean {
  try {
    if (key === undefined) context.checks.requireWholeBucket(bucket, 'read')
    else context.checks.requireKey(bucket, key, 'read')
    return true
  } catch (error) {
    if (error instanceof S3Error && error.code === 'AccessDenied') return false
    throw error
  }
}

/** Most failures that a result names. */
const MAX_FAILURES = 100

export const failure = z.object({ Key: z.string(), Code: z.string(), Message: z.string() })

export type Failure = z.output<typeof failure>

/** The failures with one more, the first hundred. */
export function keepSome(failures: readonly Failure[], added: Failure): Failure[] {
  return [...failures, added].slice(0, MAX_FAILURES)
}

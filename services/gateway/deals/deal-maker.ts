import { rfc3339 } from '../../clock.js'
import { type DealProgress, type MadeDeal, NetworkError } from '../../network/network.js'
import { DatabaseUnavailableError, UnknownCommitError } from '../../store/database.js'
import { FIRST } from '../accounts/accounts.js'
import type { GatewayCore } from '../core.js'
import { GatewayError } from '../errors.js'
import { type BucketRow, bucketLock } from '../store/buckets.js'
import { mustFindVersion } from '../store/version-reads.js'
import type { CompleteDeal, DealAsk, DealRow, Deals } from './deals.js'
import type { Manifest, ManifestFile } from './manifest.js'
import { listBucket, PackingList } from './packing-list.js'

export type DealMakerContext = Pick<
  GatewayCore,
  'db' | 'run' | 'network' | 'log' | 'bodies' | 'holds' | 'emptyBucketDeals' | 'clock'
>

const REMOVE_BATCH = 500

type OnProgress = (deal: DealRow, progress: DealProgress) => void

/** Receives the work that could not be recorded, for instance on a full disk, and must be done later. */
export interface Leftovers {
  pending(deal: DealRow): void
  /** The deal with this reference is not made; it may have been recorded as pending, and keeps bodies then. */
  begun(bucket: number, reference: string): void
}

/**
 * Makes a deal of the objects as they are now, regardless of later writes and removals. The deal is durably recorded as
 * pending before anything is sent, and with its record and all of its files when the promise resolves. Throws
 * GatewayError; then no deal exists, unless `left` was called.
 * @param reference a new one, which the network and the hold of its bodies have it by
 */
export async function makeDeal(
  context: DealMakerContext,
  ask: DealAsk,
  reference: string,
  signal: AbortSignal,
  onProgress: OnProgress,
  left: Leftovers,
): Promise<CompleteDeal> {
  const { db, holds } = context
  const pending = await begin(context, ask, reference, left)
  let made: MadeDeal | undefined
  try {
    if (ask.key.length === 0) await listFiles(context, pending, signal)
    const deal = await db.read.deals.mustFind(pending.id)
    const record = await give(context, deal, signal, (progress) => onProgress(deal, progress))
    made = record
    await db.transaction(({ deals }) => deals.complete(deal.id, record))
    return { ...deal, record }
  } catch (error) {
    // A network whose database did not answer may have made it.
    if (made !== undefined || error instanceof DatabaseUnavailableError) left.pending(pending)
    else await dropDeal(context, pending.id).catch(() => left.pending(pending))
    throw error
  } finally {
    await holds.release(pending.bucket, reference)
  }
}

/** Removes a deal that was not made. Continues where an interrupted call stopped. */
export async function dropDeal({ db }: DealMakerContext, id: number): Promise<void> {
  // Another process may have found out more.
  if (!(await db.transaction(({ deals }) => deals.drop(id)))) return
  let removed = REMOVE_BATCH
  while (removed === REMOVE_BATCH) removed = await db.transaction(({ manifest }) => manifest.remove(id, REMOVE_BATCH))
  await db.transaction(({ deals }) => deals.remove(id))
}

/** Another request with the token of this one has begun a deal. */
export class TokenInUse extends Error {
  override readonly name = 'TokenInUse'
}

/** Records the deal, and a hold of the body of the object or of all bodies of the bucket. */
async function begin(
  { db, clock, network, holds, run }: DealMakerContext,
  ask: DealAsk,
  reference: string,
  left: Leftovers,
): Promise<DealRow> {
  const { account, token, bucketName } = ask
  const found = mustOwn(await db.read.buckets.find(bucketName), ask)
  const locks = [bucketLock(found)]
  try {
    return await db.transaction(
      async (tables) => {
        const { deals } = tables
        if (token !== undefined && (await deals.findByToken(account, token)) !== undefined) throw new TokenInUse()
        const bucket = mustOwn(await tables.buckets.lock(bucketName, false), ask)
        // Another one, whose lock this is not.
        if (!locks.includes(bucketLock(bucket))) throw new GatewayError('NoSuchBucket', { bucket: bucketName })
        const id = await deals.add(ask, {
          ...{ bucket: bucket.id, reference, network: network.kind },
          ...{ asked: rfc3339(clock.now()), task: null, run: run.name },
        })
        if (ask.key.length > 0) {
          await add(tables, id, [await mustFindVersion(tables, bucket.id, ask.key, ask.generation)])
        }
        await holds.add(tables, reference, bucket.id, ask.key.length > 0 ? id : undefined)
        return await deals.mustFind(id)
      },
      { locks },
    )
  } catch (error) {
    if (error instanceof UnknownCommitError) left.begun(found.id, reference)
    throw error
  }
}

/** The bucket may have been deleted since it was named, and made again by another account. */
export function mustOwn(
  bucket: BucketRow | undefined,
  { bucketName, account }: Pick<DealAsk, 'bucketName' | 'account'>,
): BucketRow {
  if (bucket?.owner !== account) throw new GatewayError('NoSuchBucket', { bucket: bucketName })
  return bucket
}

async function listFiles(context: DealMakerContext, deal: DealRow, signal: AbortSignal): Promise<void> {
  const { db, holds, emptyBucketDeals } = context
  const snapshot = await db.snapshot()
  try {
    let files = 0
    for await (const page of listBucket(snapshot, deal.bucket)) {
      signal.throwIfAborted()
      await addFiles(context, deal, page)
      files += page.length
    }
    if (files === 0 && !emptyBucketDeals) throw new GatewayError('BucketEmpty')
  } finally {
    await snapshot.close()
  }
  await holds.narrow(deal.reference, [deal.id])
}

export async function addFiles(
  { db }: DealMakerContext,
  { id }: Pick<DealRow, 'id'>,
  files: readonly ManifestFile[],
): Promise<void> {
  await db.transaction((tables) => add(tables, id, files))
}

async function add({ deals, manifest }: FileTables, deal: number, files: readonly ManifestFile[]): Promise<void> {
  await manifest.add(deal, files)
  const bytes = files.reduce((sum, { size }) => sum + size, 0)
  await deals.count(deal, files.length, bytes)
}

interface FileTables {
  readonly deals: Deals
  readonly manifest: Manifest
}

async function give(
  context: DealMakerContext,
  deal: DealRow,
  signal: AbortSignal,
  onProgress: (progress: DealProgress) => void,
): Promise<MadeDeal> {
  const list = new PackingList(context, deal, signal)
  try {
    return await context.network.deal({
      reference: deal.reference,
      ...(await walletOf(context, deal.account)),
      terms: deal.terms,
      files: () => list.files(),
      bytesTotal: deal.bytes,
      onFile: (file) => list.packed(file),
      onProgress,
      signal,
    })
  } catch (error) {
    const known = error instanceof NetworkError || (error instanceof GatewayError && error.kind === 'RetrievalFailed')
    if (known) throw new GatewayError('DealFailed', { value: error.message }, error)
    throw error
  }
}

/** The wallet of an account. The first one has that of the gateway's first start. */
export async function walletOf({ db }: DealMakerContext, id: number): Promise<{ wallet?: string }> {
  if (id === FIRST) return {}
  const account = await db.read.accounts.get(id)
  if (account === undefined) throw new GatewayError('NotPermitted')
  return { wallet: account.canonicalId }
}

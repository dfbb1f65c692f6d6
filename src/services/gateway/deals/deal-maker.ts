import { rfc3339 } from '../../clock.js'
import { type DealProgress, type MadeDeal, NetworkError } from '../../network/network.js'
import { DatabaseUnavailableError } from '../../store/database.js'
import { FIRST } from '../accounts/accounts.js'
import type { GatewayCore } from '../core.js'
import { GatewayError } from '../errors.js'
import type { Hold } from '../store/holds.js'
import { newGeneration } from '../store/objects.js'
import type { CompleteDeal, DealAsk, DealRow } from './deals.js'
import type { ManifestFile } from './manifest.js'
import { listBucket, PackingList } from './packing-list.js'

export type DealMakerContext = Pick<GatewayCore, 'db' | 'network' | 'log' | 'bodies' | 'holds' | 'quirks' | 'clock'>

const REMOVE_BATCH = 500

type OnProgress = (deal: DealRow, progress: DealProgress) => void

/** Receives the work that could not be recorded, for instance on a full disk, and must be done later. */
export interface Leftovers {
  pending(deal: DealRow): void
  held(bucket: number): void
}

/**
 * Makes a deal of the objects as they are now, regardless of later writes and removals. The deal is durably recorded as
 * pending before anything is sent, and with its record and all of its files when the promise resolves. Throws
 * GatewayError; then no deal exists, unless `left.pending` was called.
 */
export async function makeDeal(
  context: DealMakerContext,
  ask: DealAsk,
  signal: AbortSignal,
  onProgress: OnProgress,
  left: Leftovers,
): Promise<CompleteDeal> {
  const { db, holds } = context
  const pending = await begin(context, ask)
  const hold = new DealHold(pending)
  let made: MadeDeal | undefined
  try {
    await listFiles(context, pending, hold, signal)
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
    await holds.release(pending.bucket, hold).catch((error) => {
      context.log.warn({ err: error }, 'Could not release the bodies that a deal held yet; trying again.')
      left.held(pending.bucket)
    })
  }
}

/** Removes a deal that was not made. Continues where an interrupted call stopped. */
export async function dropDeal({ db }: DealMakerContext, id: number): Promise<void> {
  await db.transaction(({ deals }) => deals.drop(id))
  let removed = REMOVE_BATCH
  while (removed === REMOVE_BATCH) removed = await db.transaction(({ manifest }) => manifest.remove(id, REMOVE_BATCH))
  await db.transaction(({ deals }) => deals.remove(id))
}

/** Holds the bodies that the deal reads. */
class DealHold implements Hold {
  readonly #deal: DealRow
  /**
   * `bucket`: all bodies of the bucket, while its objects are being listed; `manifest`: the bodies in the manifest;
   * else one generation.
   */
  scope: 'bucket' | 'manifest' | { readonly generation: string } = 'bucket'

  constructor(deal: DealRow) {
    this.#deal = deal
  }

  async covers({ manifest }: Parameters<Hold['covers']>[0], generation: string): Promise<boolean> {
    if (this.scope === 'bucket') return true
    if (this.scope === 'manifest') return manifest.has(this.#deal.id, generation)
    return this.scope.generation === generation
  }
}

/** Another request with the token of this one has begun a deal. */
export class TokenInUse extends Error {
  override readonly name = 'TokenInUse'
}

function begin({ db, clock, network }: DealMakerContext, ask: DealAsk): Promise<DealRow> {
  return db.transaction(async ({ deals, buckets }) => {
    const { account, token } = ask
    if (token !== undefined && (await deals.findByToken(account, token)) !== undefined) throw new TokenInUse()
    const bucket = await buckets.find(ask.bucketName)
    // The bucket may have been deleted since, and made again by another account.
    if (bucket?.owner !== account) throw new GatewayError('NoSuchBucket', { bucket: ask.bucketName })
    const id = await deals.add(ask, bucket.id, newGeneration(clock), network.kind, rfc3339(clock.now()))
    return deals.mustFind(id)
  })
}

async function listFiles(context: DealMakerContext, deal: DealRow, hold: DealHold, signal: AbortSignal): Promise<void> {
  const { db, holds, quirks } = context
  await holds.add(deal.bucket, hold)
  if (deal.key.length > 0) {
    const row = await db.read.objects.find(deal.bucket, deal.key)
    if (row === undefined) throw new GatewayError('NoSuchKey')
    hold.scope = row
    await addFiles(context, deal, [row])
  } else {
    const snapshot = await db.snapshot()
    try {
      let files = 0
      for await (const page of listBucket(snapshot, deal.bucket)) {
        signal.throwIfAborted()
        await addFiles(context, deal, page)
        files += page.length
      }
      if (files === 0 && !quirks.has('empty-bucket-deals')) throw new GatewayError('BucketEmpty')
    } finally {
      await snapshot.close()
    }
    await holds.settled()
    hold.scope = 'manifest'
  }
}

export async function addFiles(
  { db }: DealMakerContext,
  { id }: Pick<DealRow, 'id'>,
  files: readonly ManifestFile[],
): Promise<void> {
  await db.transaction(async ({ deals, manifest }) => {
    await manifest.add(id, files)
    const bytes = files.reduce((sum, { size }) => sum + size, 0)
    await deals.count(id, files.length, bytes)
  })
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

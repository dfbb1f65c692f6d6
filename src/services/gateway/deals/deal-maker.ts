import { join } from 'node:path'
import { rfc3339 } from '../../clock.js'
import { type DealProgress, type MadeDeal, NetworkError } from '../../network/network.js'
import { DatabaseUnavailableError } from '../../store/database.js'
import { FIRST } from '../accounts/accounts.js'
import type { GatewayCore } from '../core.js'
import { GatewayError } from '../errors.js'
import type { Hold } from '../store/holds.js'
import { newGeneration } from '../store/objects.js'
import { INDEX_FILE } from '../store/schema.js'
import type { CompleteDeal, DealAsk, DealRow } from './deals.js'
import type { ManifestFile } from './manifest.js'
import { openBucketListing, PackingList } from './packing-list.js'

export type DealMakerContext = Pick<
  GatewayCore,
  | 'deals'
  | 'manifest'
  | 'network'
  | 'log'
  | 'buckets'
  | 'objects'
  | 'bodies'
  | 'holds'
  | 'writer'
  | 'quirks'
  | 'clock'
  | 'folder'
  | 'accounts'
>

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
  const { deals, holds, writer } = context
  const pending = await begin(context, ask)
  const hold = new DealHold(context, pending)
  let made: MadeDeal | undefined
  try {
    await listFiles(context, pending, hold, signal)
    const deal = deals.mustFind(pending.id)
    const record = await give(context, deal, signal, (progress) => onProgress(deal, progress))
    made = record
    await writer.run(() => deals.complete(deal.id, record))
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
export async function dropDeal({ deals, manifest, writer }: DealMakerContext, id: number): Promise<void> {
  await writer.run(() => deals.drop(id))
  let removed = REMOVE_BATCH
  while (removed === REMOVE_BATCH) removed = await writer.run(() => manifest.remove(id, REMOVE_BATCH))
  await writer.run(() => deals.remove(id))
}

/** Holds the bodies that the deal reads. */
class DealHold implements Hold {
  readonly #context: DealMakerContext
  readonly #deal: DealRow
  /**
   * `bucket`: all bodies of the bucket, while its objects are being listed; `manifest`: the bodies in the manifest;
   * else one generation.
   */
  scope: 'bucket' | 'manifest' | { readonly generation: string } = 'bucket'

  constructor(context: DealMakerContext, deal: DealRow) {
    this.#context = context
    this.#deal = deal
  }

  covers(generation: string): boolean {
    if (this.scope === 'bucket') return true
    if (this.scope === 'manifest') return this.#context.manifest.has(this.#deal.id, generation)
    return this.scope.generation === generation
  }
}

function begin({ writer, deals, buckets, clock, network }: DealMakerContext, ask: DealAsk): Promise<DealRow> {
  return writer.run(() => {
    const bucket = buckets.find(ask.bucketName)
    // The bucket may have been deleted since, and made again by another account.
    if (bucket?.owner !== ask.account) throw new GatewayError('NoSuchBucket', { bucket: ask.bucketName })
    return deals.mustFind(deals.add(ask, bucket.id, newGeneration(clock), network.kind, rfc3339(clock.now())))
  })
}

async function listFiles(context: DealMakerContext, deal: DealRow, hold: DealHold, signal: AbortSignal): Promise<void> {
  const { holds, objects, quirks, folder } = context
  // No other code runs from here to the first await, so the listing and the hold cover the same moment.
  holds.add(deal.bucket, hold)
  if (deal.key.length > 0) {
    const row = objects.find(deal.bucket, deal.key)
    if (row === undefined) throw new GatewayError('NoSuchKey')
    hold.scope = row
    await addFiles(context, deal, [row])
  } else {
    const listing = openBucketListing(join(folder, INDEX_FILE), deal.bucket)
    try {
      let files = 0
      for (const page of listing.pages()) {
        signal.throwIfAborted()
        await addFiles(context, deal, page)
        files += page.length
      }
      if (files === 0 && !quirks.has('empty-bucket-deals')) throw new GatewayError('BucketEmpty')
    } finally {
      listing.close()
    }
    hold.scope = 'manifest'
  }
}

export async function addFiles(
  { writer, deals, manifest }: DealMakerContext,
  { id }: Pick<DealRow, 'id'>,
  files: ManifestFile[],
): Promise<void> {
  await writer.run(() => {
    for (const file of files) manifest.add(id, file)
    const bytes = files.reduce((sum, { size }) => sum + size, 0)
    deals.count(id, files.length, bytes)
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
      ...walletOf(context, deal.account),
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
export function walletOf({ accounts }: DealMakerContext, id: number): { wallet?: string } {
  if (id === FIRST) return {}
  const account = accounts.get(id)
  if (account === undefined) throw new GatewayError('NotPermitted')
  return { wallet: account.canonicalId }
}

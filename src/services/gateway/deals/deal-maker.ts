import { join } from 'node:path'
import { rfc3339 } from '../../clock.js'
import { type DealProgress, type MadeDeal, NetworkError } from '../../network/network.js'
import type { GatewayContext } from '../context.js'
import { GatewayError } from '../errors.js'
import type { Hold } from '../store/holds.js'
import { INDEX_FILE } from '../store/schema.js'
import { openBucketListing } from './bucket-listing.js'
import type { CompleteDeal, DealAsk, DealRow } from './deals.js'
import type { ManifestFile } from './manifest.js'
import { PackingList } from './packing-list.js'

export type MakerTools = Pick<
  GatewayContext,
  | 'deals'
  | 'manifest'
  | 'network'
  | 'log'
  | 'buckets'
  | 'objects'
  | 'blobs'
  | 'holds'
  | 'writer'
  | 'quirks'
  | 'clock'
  | 'folder'
>

/** Rows removed in one transaction at most. */
const REMOVE_BATCH = 500

/** Called as the deal comes on. */
export type OnProgress = (deal: DealRow, progress: DealProgress) => void

/** Told of what could not be written down, such as on a full disk, and is to be done later. */
export interface Leftovers {
  /** What became of the deal. */
  pending(deal: DealRow): void
  /** Bodies of a bucket are kept that no deal is made of any more. */
  held(bucket: number): void
}

/**
 * Makes a deal of objects as they are now, whatever is written or removed meanwhile. The deal is on the disk as pending before anything is made, and with its
 * record and all of its files when this resolves. Throws GatewayError; then there is no deal, unless `left` was told that it is pending.
 */
export async function makeDeal(
  tools: MakerTools,
  ask: DealAsk,
  signal: AbortSignal,
  onProgress: OnProgress,
  left: Leftovers,
): Promise<CompleteDeal> {
  const { deals, holds, writer } = tools
  const pending = await begin(tools, ask)
  const hold = new DealHold(tools, pending)
  let made: MadeDeal | undefined
  try {
    await listFiles(tools, pending, hold, signal)
    const deal = deals.mustFind(pending.id)
    const record = await give(tools, deal, signal, (progress) => onProgress(deal, progress))
    made = record
    await writer.run(() => deals.complete(deal.id, record))
    return { ...deal, record }
  } catch (error) {
    if (made === undefined) await dropDeal(tools, pending.id).catch(() => left.pending(pending))
    else left.pending(pending)
    throw error
  } finally {
    await holds.release(pending.bucket, hold).catch((error) => {
      tools.log.warn({ err: error }, 'What a deal was made of could not be removed yet.')
      left.held(pending.bucket)
    })
  }
}

/** Forgets a deal of which nothing came. Goes on where an earlier call was cut short. */
export async function dropDeal({ deals, manifest, writer }: MakerTools, id: number): Promise<void> {
  await writer.run(() => deals.drop(id))
  let removed = REMOVE_BATCH
  while (removed === REMOVE_BATCH) removed = await writer.run(() => manifest.remove(id, REMOVE_BATCH))
  await writer.run(() => deals.remove(id))
}

/** Keeps the bodies that the deal is made of. */
class DealHold implements Hold {
  readonly #tools: MakerTools
  readonly #deal: DealRow
  /** All of the bucket while its objects are being listed, one generation, or those in the manifest. */
  scope: 'bucket' | 'manifest' | { readonly generation: string } = 'bucket'

  constructor(tools: MakerTools, deal: DealRow) {
    this.#tools = tools
    this.#deal = deal
  }

  covers(generation: string): boolean {
    if (this.scope === 'bucket') return true
    if (this.scope === 'manifest') return this.#tools.manifest.has(this.#deal.id, generation)
    return this.scope.generation === generation
  }
}

function begin({ writer, deals, blobs, buckets, clock, network }: MakerTools, ask: DealAsk): Promise<DealRow> {
  return writer.run(() => {
    const bucket = buckets.find(ask.bucketName)
    if (bucket === undefined) throw new GatewayError('NoSuchBucket', { bucket: ask.bucketName })
    return deals.mustFind(deals.add(ask, bucket.id, blobs.newGeneration(), network.kind, rfc3339(clock.now())))
  })
}

async function listFiles(tools: MakerTools, deal: DealRow, hold: DealHold, signal: AbortSignal): Promise<void> {
  const { holds, objects, quirks, folder } = tools
  // From here to the first await nothing else runs: what is listed and what is held are of one moment.
  holds.add(deal.bucket, hold)
  if (deal.key.length > 0) {
    const row = objects.find(deal.bucket, deal.key)
    if (row === undefined) throw new GatewayError('NoSuchKey')
    hold.scope = row
    await addFiles(tools, deal, [row])
  } else {
    const listing = openBucketListing(join(folder, INDEX_FILE), deal.bucket)
    try {
      let files = 0
      for (const page of listing.pages()) {
        signal.throwIfAborted()
        await addFiles(tools, deal, page)
        files += page.length
      }
      if (files === 0 && !quirks.has('empty-bucket-deals')) throw new GatewayError('BucketEmpty')
    } finally {
      listing.close()
    }
    hold.scope = 'manifest'
  }
}

async function addFiles(
  { writer, deals, manifest }: MakerTools,
  { id }: DealRow,
  files: ManifestFile[],
): Promise<void> {
  await writer.run(() => {
    for (const file of files) manifest.add(id, file)
    const bytes = files.reduce((sum, { size }) => sum + size, 0)
    deals.count(id, files.length, bytes)
  })
}

async function give(
  tools: MakerTools,
  deal: DealRow,
  signal: AbortSignal,
  onProgress: (progress: DealProgress) => void,
): Promise<MadeDeal> {
  const list = new PackingList(tools, deal, signal)
  try {
    return await tools.network.deal({
      reference: deal.reference,
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

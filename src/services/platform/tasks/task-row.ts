import type { Task, TaskTerms } from './task.js'

export interface NewTask extends TaskTerms {
  readonly uuid: string
  readonly user: number
  /** Of the request that posts the task. */
  readonly digest: string
  readonly fileName: string
  readonly created: number
  readonly createdEpoch: number
  readonly expiresEpoch: number | null
  /** Epoch at which the platform looks for bids. */
  readonly due: number | null
}

/** A row of the table of tasks, as SQLite returns it. */
// biome-ignore lint/suspicious/noExplicitAny: the type of the driver for rows
type Row = any

export function taskOf(row: Row): Task {
  return {
    id: row.id,
    uuid: row.uuid,
    user: row.user,
    status: row.status,
    name: row.name,
    description: row.description,
    curatedDataset: row.curated_dataset,
    isPublic: row.is_public === 1,
    type: row.type,
    minerId: row.miner_id,
    tags: row.tags === '' ? [] : row.tags.split(','),
    minPrice: row.min_price === null ? null : BigInt(row.min_price),
    maxPrice: row.max_price === null ? null : BigInt(row.max_price),
    expireDays: row.expire_days,
    fastRetrieval: row.fast_retrieval === 1,
    bidMode: row.bid_mode,
    sourceId: row.source_id,
    duration: row.duration,
    fileName: row.file_name,
    created: row.created,
    createdEpoch: row.created_epoch,
    expiresEpoch: row.expires_epoch,
    smallestPiece: row.smallest_piece,
    largestPiece: row.largest_piece,
    bids: row.bids,
    deals: row.deals,
    activeDeals: row.active_deals,
    failedDeals: row.failed_deals,
    sentDeals: row.sent_deals,
  }
}

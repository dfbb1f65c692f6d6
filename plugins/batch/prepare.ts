import { formatAmount, parseAmount, S3Error } from 'dealgate/plugin'
import { type FoundRow, rowsOfFilter } from './filter.js'
import { etagOf, rowsOfManifest } from './manifest.js'
import type { BatchOrder, Row } from './order.js'
import { type BatchRecord, type BatchRun, CHUNK_ROWS } from './records.js'
import type { Send } from './task.js'

/** Chunks after which the place in the listing is recorded. */
export const CHECKPOINT = 10

/** Most rows of a job, so that it does not fill the state: about 1 GB. */
const MAX_ROWS = 10_000_000

/** Interval at which the place is recorded also while a filter accepts no object, ms. */
const SAVE_MS = 5000

interface Listed {
  readonly row?: Row
  readonly size: number
  readonly at?: FoundRow['at']
}

/**
 * Records the rows of a job, in chunks. Goes on where an earlier run has ended: behind an object of a listing, or a row
 * of the manifest, whose ETag does not change.
 * @param turn awaited before each chunk, and whenever the place is recorded; throws to end the run
 * @throws S3Error InvalidManifest, InvalidRequest for too many rows, and those of the requests
 */
export async function prepareRows(
  run: BatchRun,
  order: BatchOrder,
  send: Send,
  turn: (rows: number) => Promise<void>,
  { saveMs = SAVE_MS, maxRows = MAX_ROWS } = {},
): Promise<BatchRecord> {
  let record = await run.get()
  let { chunks, rows } = record.listing
  let bytes = record.bytes
  let pending: Row[] = []
  let at = record.listing.at
  const save = (prepared: boolean) =>
    run.change((present) => ({ ...present, prepared, bytes, listing: { chunks, rows, ...(at && { at }) } }))
  const flush = async () => {
    await turn(rows + pending.length)
    await run.put(chunks++, { rows: pending })
    rows += pending.length
    pending = []
    if (chunks % CHECKPOINT === 0) record = await save(false)
  }
  let saved = performance.now()
  for await (const listed of await listingOf(run, order, record, send)) {
    at = listed.at
    if (listed.row) {
      if (rows + pending.length >= maxRows) throw tooManyRows(maxRows)
      pending.push(listed.row)
      bytes += listed.size
      if (pending.length === CHUNK_ROWS) await flush()
    } else if (performance.now() - saved >= saveMs) {
      saved = performance.now()
      await (pending.length > 0 ? flush() : turn(rows))
      record = await save(false)
    }
  }
  if (pending.length > 0) await flush()
  return save(true)
}

function tooManyRows(maxRows: number): S3Error {
  return new S3Error('InvalidRequest', { message: `A job has at most ${maxRows} objects: order several jobs.` })
}

async function listingOf(
  run: BatchRun,
  { manifest, filter }: BatchOrder,
  { listing, etag }: BatchRecord,
  send: Send,
): Promise<AsyncIterable<Listed>> {
  if (filter) return rowsOfFilter(filter, send, listing.at)
  if (!manifest) throw new Error('the job names neither a manifest nor a filter')
  const known = etag ?? manifest.etag ?? (await etagOf(manifest, send))
  if (etag === undefined) await run.change((present) => ({ ...present, etag: known }))
  return behind(listing.rows, rowsOfManifest(manifest, known, send))
}

async function* behind(skipped: number, rows: AsyncIterable<Row>): AsyncGenerator<Listed> {
  let number = 0
  for await (const row of rows) if (number++ >= skipped) yield { row, size: 0 }
}

/** What the tasks of a chunk would cost. */
interface ChunkEstimate {
  readonly bytes: number
  readonly failed: number
  /** Attofil; undefined for an operation without a price. */
  readonly price?: bigint
}

/** The record with the estimate of another chunk. */
export function withEstimate(record: BatchRecord, { bytes, failed, price }: ChunkEstimate): BatchRecord {
  const { chunks, failed: before, price: sum } = record.estimated
  const total = price === undefined ? undefined : formatAmount((parseAmount(sum ?? '0') ?? 0n) + price)
  const estimated = { chunks: chunks + 1, failed: before + failed, ...(total !== undefined && { price: total }) }
  // The bytes of the listing and those of the estimate are the same.
  return { ...record, estimated, bytes: chunks === 0 ? bytes : record.bytes + bytes }
}

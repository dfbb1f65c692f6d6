import { S3Error } from '../errors/s3-error.js'
import type { Bound } from './bound.js'
import { nonsense, unavailable } from './errors.js'
import { Level, LevelBuilder } from './level.js'
import { type RawEntry, readEntry } from './list-entry.js'
import { ListingScanner } from './listing-scanner.js'
import type { Rpc, RpcCall } from './rpc.js'
import { Selection } from './selection.js'
import type { Session } from './session.js'
import type { Reading, SnapshotCache } from './snapshot-cache.js'

/** A one-level gateway walks a whole directory before it sends the first byte of a listing: patience in multiples of that for other calls. */
const PATIENCE = 4
/** Memory is taken from the cache's amount in pieces of this size, bytes. */
const RESERVE_BYTES = 64 * 1024
/** Fewest entries worth another reading of a level too large to keep. */
const MIN_SELECTION = 1000

export interface LevelSource {
  readonly rpc: Rpc
  readonly session: Session
  readonly snapshots: SnapshotCache
  readonly timeoutMs: number
}

export interface LevelQuery {
  readonly bucket: string
  /** As the gateway is asked for it; may end inside a name. */
  readonly prefix: string
  readonly bound: Bound
  /** Entries that will be wanted, at least. */
  readonly limit: number
  /** Whether what an earlier page has read will do. */
  readonly continued: boolean
}

/** The entries of one level from `bound` on, sorted. Not complete when the level is too large for the memory there is. Throws S3Error. */
export async function readLevel(source: LevelSource, query: LevelQuery): Promise<Level> {
  const { snapshots, session } = source
  if (query.continued) {
    const kept = snapshots.get(session, query.bucket, query.prefix)
    if (kept) return kept
    // An earlier page may have read ahead.
    const underWay = await snapshots.underWay(session, query.bucket, query.prefix)?.catch(() => undefined)
    if (underWay?.complete) return underWay
  }
  const reading = snapshots.begin(session, query.bucket, query.prefix)
  reading.level = collect(source, query, reading)
  return reading.level
}

async function collect(source: LevelSource, query: LevelQuery, reading: Reading): Promise<Level> {
  const collector = new Collector(source.snapshots, query)
  try {
    await scanLevel(source, query.bucket, query.prefix, (entry) => {
      collector.add(entry)
      return true
    })
    return await collector.finish(reading)
  } finally {
    collector.release()
    source.snapshots.end(reading)
  }
}

/**
 * Reads a listing entry by entry until `visit` returns false. Entries without the asked prefix are passed over, as are those of the prefix itself
 * as a folder. Throws S3Error.
 */
export async function scanLevel(
  source: LevelSource,
  bucket: string,
  prefix: string,
  visit: (entry: RawEntry) => boolean,
): Promise<void> {
  try {
    await source.session.withLogin((token) =>
      scan(source, { ...listCall(bucket, prefix, source.timeoutMs * PATIENCE), token }, visit),
    )
  } catch (error) {
    // A prefix that no key can have: nothing is there.
    if (error instanceof S3Error && error.code === 'NoSuchKey') return
    throw error
  }
}

function listCall(bucket: string, prefix: string, timeoutMs: number): RpcCall {
  return {
    method: 'web.ListObjects',
    params: { bucketName: bucket, prefix },
    subject: { bucket },
    repeatable: true,
    timeoutMs,
  }
}

async function scan(source: LevelSource, call: RpcCall, visit: (entry: RawEntry) => boolean): Promise<void> {
  const { prefix } = call.params as { prefix: string }
  const scanner = new ListingScanner()
  const body = await source.rpc.open(call)
  // Leaving the loop early destroys the body and with it the connection.
  for await (const chunk of received(body)) {
    for (const entry of readable(call, () => scanner.push(chunk).map(readEntry))) {
      if (!entry.name.startsWith(prefix) || (entry.isPrefix && entry.name === prefix)) continue
      if (visit(entry) === false) return
    }
  }
  const { objects } = source.rpc.resultOf(
    readable(call, () => scanner.end()),
    call,
  )
  // Anything else is no empty listing: whoever synchronises with it would remove what it does not show.
  if (!Array.isArray(objects) && objects !== null && objects !== undefined) throw unreadable(call)
}

/** The body's chunks, with failures of the connection as S3Error. */
async function* received(body: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  try {
    yield* body
  } catch (error) {
    throw unavailable(error)
  }
}

function readable<T>(call: RpcCall, parse: () => T): T {
  try {
    return parse()
  } catch {
    throw unreadable(call)
  }
}

function unreadable(call: RpcCall): Error {
  return nonsense(`answered ${call.method} with a listing that cannot be read`)
}

/** Keeps a whole level while there is memory for it; what was asked for is selected all along, in case there is not. */
class Collector {
  readonly #snapshots: SnapshotCache
  readonly #selection: Selection
  #all: LevelBuilder | undefined = new LevelBuilder()
  #reserved = 0

  constructor(snapshots: SnapshotCache, { bound, limit }: LevelQuery) {
    this.#snapshots = snapshots
    this.#selection = new Selection(bound, Math.max(limit, MIN_SELECTION) + 1)
  }

  add(entry: RawEntry): void {
    this.#selection.add(entry)
    this.#all?.add(entry)
    while (this.#all && this.#all.bytes > this.#reserved) {
      if (this.#snapshots.reserve(RESERVE_BYTES)) this.#reserved += RESERVE_BYTES
      else {
        this.#all = undefined
        this.release()
      }
    }
  }

  async finish(reading: Reading): Promise<Level> {
    if (!this.#all) return Level.seal(this.#selection.sorted(), !this.#selection.overflowed)
    const level = await Level.seal(this.#all, true)
    this.release()
    this.#snapshots.store(reading, level)
    return level
  }

  release(): void {
    this.#snapshots.release(this.#reserved)
    this.#reserved = 0
  }
}

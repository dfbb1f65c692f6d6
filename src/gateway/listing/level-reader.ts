import { setImmediate } from 'node:timers/promises'
import type { Session } from '../account/session.js'
import type { Rpc } from '../calls/rpc.js'
import type { RpcCall } from '../calls/rpc-sender.js'
import { isEmptyListing, nonsense, unavailable } from '../errors.js'
import { Level, LevelBuilder } from './level.js'
import { ListingScanner, type RawEntry, readEntry } from './listing-scanner.js'
import type { Bound } from './packed-entries.js'
import { Selection } from './selection.js'
import type { Reading, SnapshotCache } from './snapshot-cache.js'

/**
 * Timeouts that a listing may take: a one-level gateway reads a whole directory before it sends the first byte. A
 * lookup has one request behind it, and does not wait longer than any other call.
 */
const MAX_TIMEOUTS = 4

/** Memory is reserved from the cache in pieces of this size, bytes. */
const RESERVE_BYTES = 64 * 1024

/** Bytes of a reply that are read before the event loop continues: a few milliseconds of work. */
const TURN_BYTES = 128 * 1024

/** Fewest entries that justify another read of a level too large to keep. */
const MIN_SELECTION = 1000

export interface LevelSource {
  readonly rpc: Rpc
  readonly session: Session
  readonly snapshots: SnapshotCache
  readonly timeoutMs: number
}

interface LevelQuery {
  readonly bucket: string
  /** The prefix that the gateway is asked for. It may end inside a name. */
  readonly prefix: string
  readonly bound: Bound
  /** Least number of entries that the caller will need. */
  readonly limit: number
  /** True when a level that an earlier page has read may be used. */
  readonly continued: boolean
}

/**
 * Reads the entries of one level from `bound` on, sorted. The level is not complete when it does not fit in the
 * available memory. Throws S3Error.
 */
export async function readLevel(source: LevelSource, query: LevelQuery): Promise<Level> {
  const { snapshots, session } = source
  if (query.continued) {
    const kept = snapshots.get(session, query.bucket, query.prefix)
    if (kept) {
      snapshots.hits++
      return kept
    }
    // An earlier page may have started to read ahead.
    const underWay = await snapshots.underWay(session, query.bucket, query.prefix)?.catch(() => undefined)
    if (underWay?.complete) {
      snapshots.hits++
      return underWay
    }
    snapshots.misses++
  }
  const reading = snapshots.begin(session, query.bucket, query.prefix)
  reading.level = collect(source, query, reading)
  return reading.level
}

async function collect(source: LevelSource, query: LevelQuery, reading: Reading): Promise<Level> {
  const collector = new Collector(source.snapshots, query)
  try {
    await listLevel(source, query.bucket, query.prefix, (entry) => {
      collector.add(entry)
      return true
    })
    return await collector.finish(reading)
  } finally {
    collector.release()
    source.snapshots.end(reading)
  }
}

/** Does what `scanLevel` does, with the time that a whole level may need. */
export function listLevel(
  source: LevelSource,
  bucket: string,
  prefix: string,
  visit: (entry: RawEntry) => boolean,
): Promise<void> {
  return scanLevel(source, bucket, prefix, visit, source.timeoutMs * MAX_TIMEOUTS)
}

/**
 * Reads a listing entry by entry until `visit` returns false. Skips entries without the requested prefix, and the entry
 * of the prefix itself as a folder. Throws S3Error.
 * @param timeoutMs longest wait for the first byte
 */
export async function scanLevel(
  source: LevelSource,
  bucket: string,
  prefix: string,
  visit: (entry: RawEntry) => boolean,
  timeoutMs = source.timeoutMs,
): Promise<void> {
  try {
    const call = listCall(bucket, prefix, timeoutMs)
    await source.session.withLogin((token) =>
      source.rpc.withServiceWord(() =>
        source.rpc.watched({ ...call, token }, (sent) =>
          source.rpc.open(sent, (body) => scan(source, sent, body, visit)),
        ),
      ),
    )
  } catch (error) {
    if (isEmptyListing(error, bucket, prefix)) return
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

async function scan(
  source: LevelSource,
  call: RpcCall,
  body: AsyncIterable<Buffer>,
  visit: (entry: RawEntry) => boolean,
): Promise<void> {
  const { prefix } = call.params as { prefix: string }
  const scanner = new ListingScanner()
  let read = 0
  // Leaving the loop early destroys the body and with it the connection.
  for await (const chunk of received(body)) {
    for (const entry of readable(call, () => scanner.push(chunk).map(readEntry))) {
      if (!entry.name.startsWith(prefix) || (entry.isPrefix && entry.name === prefix)) continue
      if (visit(entry) === false) return
    }
    read += chunk.length
    if (read < TURN_BYTES) continue
    // One turn of the event loop may bring 2 MiB, which are 15,000 entries.
    read = 0
    await setImmediate()
  }
  const { objects } = source.rpc.resultOf(
    readable(call, () => scanner.end()),
    call,
  )
  // An unreadable listing must not pass for an empty one: a client that synchronises with it would delete the missing
  // objects.
  if (!Array.isArray(objects) && objects !== null && objects !== undefined) throw unreadable(call)
}

/** The chunks of the body. Converts failures of the connection to S3Error. */
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

/** Keeps a whole level while it fits in memory. Selects the requested entries at the same time, in case it does not. */
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

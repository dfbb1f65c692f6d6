import type { Level } from './level.js'

/** Time for which later pages of a listing may use a level that an earlier page has read, ms. */
const LIFE_MS = 60_000

interface Snapshot {
  readonly account: object
  readonly bucket: string
  readonly prefix: string
  readonly level: Level
  readonly until: number
}

/** A level that is being read. It is not kept if a write changes it meanwhile. */
export interface Reading {
  readonly account: object
  readonly bucket: string
  readonly prefix: string
  outdated: boolean
  level?: Promise<Level>
}

/**
 * Caches levels for the next pages of listings, within a memory limit that includes levels being read. A write by this
 * proxy removes every level that could show it, so that a client sees its own writes.
 */
export class SnapshotCache {
  readonly #limit: number
  readonly #now: () => number
  /** Snapshots by bucket, prefix and account. The order of `#byUse` is the order of last use. */
  readonly #places = new Map<string, Map<string, Map<object, Snapshot>>>()
  readonly #byUse = new Set<Snapshot>()
  readonly #readings = new Set<Reading>()
  #stored = 0
  #reserved = 0
  #sweep: NodeJS.Timeout | undefined

  /** Looks for levels that earlier pages have read. */
  hits = 0
  misses = 0

  /** @param limit bytes */
  constructor(limit: number, now: () => number) {
    this.#limit = limit
    this.#now = now
  }

  get(account: object, bucket: string, prefix: string): Level | undefined {
    const snapshot = this.#places.get(bucket)?.get(prefix)?.get(account)
    if (!snapshot) return undefined
    if (snapshot.until <= this.#now()) {
      this.#drop(snapshot)
      return undefined
    }
    this.#byUse.delete(snapshot)
    this.#byUse.add(snapshot)
    return snapshot.level
  }

  /** The level that another request is reading. It may turn out to be incomplete. */
  underWay(account: object, bucket: string, prefix: string): Promise<Level> | undefined {
    for (const reading of this.#readings) {
      const same = reading.prefix === prefix && reading.bucket === bucket && reading.account === account
      if (same && !reading.outdated) return reading.level
    }
    return undefined
  }

  begin(account: object, bucket: string, prefix: string): Reading {
    const reading: Reading = { account, bucket, prefix, outdated: false }
    this.#readings.add(reading)
    return reading
  }

  end(reading: Reading): void {
    this.#readings.delete(reading)
  }

  /**
   * Reserves memory for a level that is being read, and evicts the least recently used snapshots for it. False when
   * there is not enough memory.
   */
  reserve(bytes: number): boolean {
    for (const oldest of this.#byUse) {
      if (this.#stored + this.#reserved + bytes <= this.#limit) break
      this.#drop(oldest)
    }
    if (this.#stored + this.#reserved + bytes > this.#limit) return false
    this.#reserved += bytes
    return true
  }

  release(bytes: number): void {
    this.#reserved -= bytes
  }

  /** Keeps a complete level, unless it is outdated or there is no room. The caller has released its reservation. */
  store(reading: Reading, level: Level): void {
    if (reading.outdated || !this.reserve(level.bytes)) return
    this.release(level.bytes)
    const { account, bucket, prefix } = reading
    const prefixes = entry(this.#places, bucket, () => new Map<string, Map<object, Snapshot>>())
    const accounts = entry(prefixes, prefix, () => new Map<object, Snapshot>())
    const earlier = accounts.get(account)
    if (earlier) this.#forget(earlier)
    const snapshot = { account, bucket, prefix, level, until: this.#now() + LIFE_MS }
    accounts.set(account, snapshot)
    this.#byUse.add(snapshot)
    this.#stored += level.bytes
    this.#sweepLater()
  }

  /** Invalidates the levels that could show `key`, which was or may have been written or removed. */
  changed(bucket: string, key: string): void {
    for (const reading of this.#readings)
      if (reading.bucket === bucket && key.startsWith(reading.prefix)) reading.outdated = true
    const prefixes = this.#places.get(bucket)
    if (!prefixes) return
    for (let length = 0; length <= key.length; length++) {
      for (const snapshot of prefixes.get(key.slice(0, length))?.values() ?? []) this.#drop(snapshot)
    }
  }

  /** Invalidates the levels of a bucket that was or may have been made or removed. */
  bucketChanged(bucket: string): void {
    for (const reading of this.#readings) if (reading.bucket === bucket) reading.outdated = true
    for (const accounts of this.#places.get(bucket)?.values() ?? [])
      for (const snapshot of accounts.values()) this.#drop(snapshot)
  }

  /** Invalidates all levels. */
  everythingChanged(): void {
    for (const reading of this.#readings) reading.outdated = true
    for (const snapshot of this.#byUse) this.#drop(snapshot)
  }

  clear(): void {
    clearTimeout(this.#sweep)
    this.#places.clear()
    this.#byUse.clear()
    this.#stored = 0
  }

  #drop(snapshot: Snapshot): void {
    this.#forget(snapshot)
    const prefixes = this.#places.get(snapshot.bucket)
    const accounts = prefixes?.get(snapshot.prefix)
    accounts?.delete(snapshot.account)
    if (accounts?.size === 0) prefixes?.delete(snapshot.prefix)
    if (prefixes?.size === 0) this.#places.delete(snapshot.bucket)
  }

  #forget(snapshot: Snapshot): void {
    if (this.#byUse.delete(snapshot)) this.#stored -= snapshot.level.bytes
  }

  /** Frees the memory of expired levels. */
  #sweepLater(): void {
    if (this.#sweep) return
    this.#sweep = setTimeout(() => {
      this.#sweep = undefined
      const now = this.#now()
      for (const snapshot of this.#byUse) if (snapshot.until <= now) this.#drop(snapshot)
      if (this.#byUse.size > 0) this.#sweepLater()
    }, LIFE_MS)
    this.#sweep.unref()
  }
}

function entry<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  const present = map.get(key)
  if (present !== undefined) return present
  const made = make()
  map.set(key, made)
  return made
}

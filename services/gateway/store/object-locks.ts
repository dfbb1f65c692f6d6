import { DAY_MS } from '../../../common/time.js'
import { type Connection, statements } from '../../store/database.js'
import { GatewayError } from '../errors.js'
import type { BucketRow } from './buckets.js'

export const lockModes = ['GOVERNANCE', 'COMPLIANCE'] as const

/** What keeps a version from being removed, as its row says it. */
export interface LockRow {
  readonly mode: string | null
  /** End of the retention, ms since 1970. */
  readonly ends: number | null
  readonly hold: number
}

interface FoundLock extends LockRow {
  /** Clock of the database, ms since 1970. */
  readonly clock: number | null
}

export interface Retention {
  readonly mode: (typeof lockModes)[number]
  /** ms since 1970. */
  readonly until: number
}

/** The lock that a new object shall have, beyond that of its bucket. */
export interface DeclaredLock {
  readonly retention?: Retention | undefined
  readonly hold?: boolean | undefined
}

/** A change of the lock of a version. What is absent stays; `null` ends the retention. */
interface LockChange {
  readonly retention?: Retention | null | undefined
  readonly hold?: boolean | undefined
}

/** The retention of the new objects of a bucket, as its row has it. */
interface LockRule {
  readonly mode?: Retention['mode']
  readonly days?: number
  readonly years?: number
}

export const MAX_YEARS = 100
export const DAYS_OF_YEAR = 365

/** The latest time seen is kept again when the clock has gone on by this, ms, but not when it jumps. */
const SEEN_STEP_MS = 1000
export const JUMP_MS = DAY_MS

/** The clock of the database, ms since 1970. That of SQLite is the clock of this process. */
const databaseClock = {
  sqlite: 'NULL',
  postgres: '(extract(epoch FROM clock_timestamp()) * 1000)::bigint',
}

/** The clocks that locks go by, ms since 1970. */
export interface LockTimes {
  /** The earlier one of the database's and this machine's: a single one that is ahead ends no lock. */
  readonly now: number
  /** The latest time that was ever kept; null before the first lock. */
  readonly seen: number | null
  /** Null in SQLite. */
  readonly database: number | null
}

/** The table of locks, by the generation of the version. Call writing methods inside a transaction. */
export class ObjectLocks {
  readonly #sql

  constructor(connection: Connection) {
    const clock = databaseClock[connection.engine]
    this.#sql = statements(connection, {
      find: `SELECT mode, ends, hold, ${clock} AS clock FROM object_locks WHERE generation = ?`,
      put: `
        INSERT INTO object_locks (generation, mode, ends, hold) VALUES (?, ?, ?, ?) ON CONFLICT (generation)
        DO UPDATE SET mode = excluded.mode, ends = excluded.ends, hold = excluded.hold
      `,
      remove: 'DELETE FROM object_locks WHERE generation = ?',
      times: `SELECT ${clock} AS clock, (SELECT seen FROM lock_clock WHERE id = 1) AS seen`,
      begin: 'INSERT INTO lock_clock (id, seen) VALUES (1, ?) ON CONFLICT (id) DO NOTHING',
      see: 'UPDATE lock_clock SET seen = ?1 WHERE id = 1 AND seen < ?1',
    })
  }

  find(generation: string): Promise<FoundLock | undefined> {
    return this.#sql.find.get<FoundLock>(generation)
  }

  async put(generation: string, { mode, ends, hold }: LockRow): Promise<void> {
    await this.#sql.put.run(generation, mode, ends, hold)
  }

  async remove(generation: string): Promise<void> {
    await this.#sql.remove.run(generation)
  }

  /**
   * When locks begin now, ms since 1970: at the latest time that was ever seen, and kept. A clock that is set back
   * begins no lock earlier.
   */
  async now(): Promise<number> {
    const { now, seen } = await this.times()
    if (seen === null) await this.#sql.begin.run(now)
    else if (now >= seen + SEEN_STEP_MS && now < seen + JUMP_MS) await this.see(now)
    return Math.max(now, seen ?? 0)
  }

  async times(): Promise<LockTimes> {
    const { clock, seen } = (await this.#sql.times.get<{ clock: number | null; seen: number | null }>()) ?? NO_TIMES
    return { now: earlier(clock), seen, database: clock }
  }

  /** Keeps the time, if any lock was ever made. */
  async see(now: number): Promise<void> {
    await this.#sql.see.run(now)
  }
}

const NO_TIMES = { clock: null, seen: null }

/** The earlier one of the clock of this machine and that of the database. */
function earlier(clock: number | null): number {
  return Math.min(Date.now(), clock ?? Number.POSITIVE_INFINITY)
}

interface LockTables {
  readonly locks: ObjectLocks
}

/**
 * Throws GatewayError ObjectLocked when the version of this generation must not be removed now. A row that says
 * something else than a lock of today locks for ever.
 * @param bypass a retention in GOVERNANCE mode does not count
 */
export async function mustBeFree(tables: LockTables, generation: string, bypass: boolean): Promise<void> {
  if (await isLocked(tables, generation, bypass)) throw new GatewayError('ObjectLocked')
}

export async function isLocked({ locks }: LockTables, generation: string, bypass = false): Promise<boolean> {
  const lock = await locks.find(generation)
  return lock !== undefined && (lock.hold !== 0 || isRetained(lock, bypass))
}

function isRetained({ mode, ends, clock }: FoundLock, bypass: boolean): boolean {
  if (mode === null && ends === null) return false
  if (!isMode(mode) || !Number.isSafeInteger(ends)) return true
  // The clocks of now decide: one that was ahead for a while must not free all that it has seen the end of.
  return Number(ends) > earlier(clock) && !(bypass && mode === 'GOVERNANCE')
}

function isMode(mode: string | null): mode is Retention['mode'] {
  return (lockModes as readonly (string | null)[]).includes(mode)
}

/**
 * Locks a new object as its bucket demands, or as its writer does. Keeps a date that has passed: an upload in parts may
 * have begun before. Throws GatewayError NoLockConfiguration.
 */
export async function lockNew(
  { locks }: LockTables,
  { lockRule }: BucketRow,
  generation: string,
  { retention, hold = false }: DeclaredLock = {},
): Promise<LockRow | undefined> {
  if (lockRule === null) {
    if (retention !== undefined || hold) throw new GatewayError('NoLockConfiguration')
    return undefined
  }
  const rule = parseRule(lockRule)
  if (retention === undefined && rule.mode === undefined && !hold) return undefined
  const { mode, until } = retention ?? retentionBy(rule, await locks.now())
  const lock: LockRow = { mode, ends: until, hold: hold ? 1 : 0 }
  await locks.put(generation, lock)
  return lock
}

function retentionBy(
  { mode, days, years }: LockRule,
  now: number,
): { readonly mode: string | null; readonly until: number | null } {
  if (mode === undefined) return { mode: null, until: null }
  return { mode, until: now + (days ?? (years ?? 0) * DAYS_OF_YEAR) * DAY_MS }
}

/** Throws for a rule that cannot be read: nothing is stored without the lock that it may demand. */
export function parseRule(text: string): LockRule {
  const { mode, days, years } = JSON.parse(text) as LockRule
  const isPeriod = (days === undefined) !== (years === undefined) && Number.isSafeInteger(days ?? years)
  if (mode === undefined) return {}
  if (!isMode(mode) || !isPeriod) throw new Error(`The index holds a retention that is unknown: ${text}`)
  return { mode, ...(days !== undefined && { days }), ...(years !== undefined && { years }) }
}

/**
 * Changes the lock of a version, which no longer ends earlier by it than before, except for a caller who may bypass a
 * retention in GOVERNANCE mode. Throws GatewayError LockTooShort or RetainInPast.
 */
export async function changeLock(
  { locks }: LockTables,
  generation: string,
  { retention, hold }: LockChange,
  bypass: boolean,
): Promise<void> {
  const before = (await locks.find(generation)) ?? { mode: null, ends: null, hold: 0, clock: null }
  const now = await locks.now()
  if (retention !== undefined && !mayBecome(before, retention, bypass)) throw new GatewayError('LockTooShort')
  if (retention && retention.until <= now) throw new GatewayError('RetainInPast')
  const after: LockRow = {
    mode: retention === undefined ? before.mode : (retention?.mode ?? null),
    ends: retention === undefined ? before.ends : (retention?.until ?? null),
    hold: hold === undefined ? before.hold : Number(hold),
  }
  if (after.mode === null && after.ends === null && after.hold === 0) await locks.remove(generation)
  else await locks.put(generation, after)
}

function mayBecome(before: FoundLock, after: Retention | null, bypass: boolean): boolean {
  if (!isRetained(before, bypass)) return true
  if (after === null || !isMode(before.mode) || !Number.isSafeInteger(before.ends)) return false
  return after.until >= Number(before.ends) && (after.mode === before.mode || after.mode === 'COMPLIANCE')
}

import type { Database } from '../database.js'
import { FIRST_USER, type User } from './users.js'

export interface MinerSettings {
  /** 1: by itself; 0: only when its owner does. */
  readonly bidMode: 0 | 1
  /** Epochs that sealing takes, as the owner expects. */
  readonly expectedSealingTime: number
  /** Epochs from the assignment of a deal to its start. */
  readonly startEpoch: number
  /** Most bids that it makes by itself in a day. */
  readonly autoBidTaskPerDay: number
  /** Unix seconds; undefined before the first update. */
  readonly updated: number | undefined
}

/** Of a provider whose owner has said nothing: 1 day of sealing, 7 days to the start. */
const USUAL: MinerSettings = {
  bidMode: 1,
  expectedSealingTime: 2880,
  startEpoch: 20_160,
  autoBidTaskPerDay: 100,
  updated: undefined,
}

/** The platform's own knowledge of storage providers. Call writing methods inside a transaction. */
export class Miners {
  readonly #get
  readonly #set

  constructor(db: Database) {
    this.#get = db.prepare('SELECT * FROM miners WHERE miner_id = ?')
    this.#set = db.prepare(`
      INSERT OR REPLACE INTO miners (
        miner_id, bid_mode, expected_sealing_time, start_epoch, auto_bid_task_per_day, updated
      ) VALUES (?, ?, ?, ?, ?, ?)
    `)
  }

  /** True when the provider is the user's. The first user has all providers of the network. */
  isOwner({ id }: User): boolean {
    return id === FIRST_USER
  }

  settings(minerId: string): MinerSettings {
    const row = this.#get.get(minerId)
    if (row === undefined) return USUAL
    return {
      bidMode: row.bid_mode,
      expectedSealingTime: row.expected_sealing_time,
      startEpoch: row.start_epoch,
      autoBidTaskPerDay: row.auto_bid_task_per_day,
      updated: row.updated,
    }
  }

  /** Keeps the settings. @param updated Unix seconds */
  touch(minerId: string, updated: number): void {
    this.set(minerId, this.settings(minerId), updated)
  }

  /** @param updated Unix seconds */
  set(minerId: string, settings: Omit<MinerSettings, 'updated'>, updated: number): void {
    const { bidMode, expectedSealingTime, startEpoch, autoBidTaskPerDay } = settings
    this.#set.run(minerId, bidMode, expectedSealingTime, startEpoch, autoBidTaskPerDay, updated)
  }
}

/**
 * How the owner of a storage provider wants it to bid: rows of those that have said so. What the network knows of a
 * provider is not here. `updated` is in Unix seconds.
 */
export const minerSchema = `
  CREATE TABLE miners (
    miner_id TEXT PRIMARY KEY,
    bid_mode INTEGER NOT NULL,
    expected_sealing_time INTEGER NOT NULL,
    start_epoch INTEGER NOT NULL,
    auto_bid_task_per_day INTEGER NOT NULL,
    updated INTEGER NOT NULL
  ) STRICT;
`

import { Columns } from '../columns.js'
import { tableOf } from '../store/database.js'

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

/** Settings of a provider whose owner has said nothing: 1 day of sealing, 7 days to the start. */
const DEFAULTS: MinerSettings = {
  bidMode: 1,
  expectedSealingTime: 2880,
  startEpoch: 20_160,
  autoBidTaskPerDay: 100,
  updated: undefined,
}

interface MinerRow extends MinerSettings {
  readonly minerId: string
}

const MINER = new Columns<MinerRow>({})

const COLUMNS = ['minerId', 'bidMode', 'expectedSealingTime', 'startEpoch', 'autoBidTaskPerDay', 'updated'] as const

/** The platform's own knowledge of storage providers. Call writing methods inside a transaction. */
export class Miners extends tableOf({
  get: 'SELECT * FROM miners WHERE miner_id = ?',
  set: `
  ${MINER.insert('miners', COLUMNS)}
  ON CONFLICT (miner_id) DO UPDATE SET bid_mode = excluded.bid_mode,
    expected_sealing_time = excluded.expected_sealing_time, start_epoch = excluded.start_epoch,
    auto_bid_task_per_day = excluded.auto_bid_task_per_day, updated = excluded.updated
`,
}) {
  async settings(minerId: string): Promise<MinerSettings> {
    const row = await this.sql.get.get(minerId)
    return row === undefined ? DEFAULTS : MINER.read(row)
  }

  /** Keeps the settings. @param updated Unix seconds */
  async touch(minerId: string, updated: number): Promise<void> {
    await this.set(minerId, await this.settings(minerId), updated)
  }

  /** @param updated Unix seconds */
  async set(minerId: string, settings: Omit<MinerSettings, 'updated'>, updated: number): Promise<void> {
    await this.sql.set.run(...MINER.values({ ...settings, minerId, updated }, COLUMNS))
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

import { open, unlink } from 'node:fs/promises'
import { type Database, tableOf } from '../../store/database.js'
import type { EpochClock } from '../epoch-clock.js'
import type { Expiry } from '../expiry.js'
import { NetworkError } from '../network.js'
import { sectionsOf } from '../pack/car/car-sections.js'
import type { Cars } from './cars.js'
import type { ProviderTable } from './providers.js'

export interface NetworkControl {
  /**
   * Switches a fault of a provider on or off. Resolves when the switch is durable and applied to the data of the
   * provider. Rejects with NetworkError NoSuchProvider, or with RangeError when the fault does not exist.
   */
  setFault(minerId: string, fault: Fault, on: boolean): Promise<void>
  faults(): Promise<readonly ProviderFault[]>
  /**
   * Advances the epoch. Resolves when deals that have ended by then are dropped. Rejects with RangeError unless
   * `epochs` is a whole number above 0.
   */
  advance(epochs: number): Promise<void>
}

export function createControl(
  db: Database<{ readonly providers: ProviderTable; readonly faults: FaultTable }>,
  cars: Cars,
  epochs: EpochClock,
  expiry: Expiry,
): NetworkControl {
  return {
    async setFault(minerId, fault, on) {
      if ((await db.read.providers.find(minerId)) === undefined) {
        throw new NetworkError('NoSuchProvider', `There is no storage provider "${minerId}" in this network.`)
      }
      if (!faultNames.includes(fault)) {
        throw new RangeError(`There is no fault "${fault}"; there are ${faultNames.join(', ')}.`)
      }
      await db.transaction(({ faults }) => faults.set(minerId, fault, on))
      for (const car of await cars.of(minerId)) await applyFaults(car, minerId, db.read.faults)
    },
    faults: () => db.read.faults.all(),
    async advance(by) {
      await epochs.advance(by)
      await expiry.run()
    },
  }
}

/**
 * Faults of a provider that tests and demonstrations can switch on:
 * `offline`: it neither accepts deals nor delivers.
 * `rejects`: deals made from now on end in StorageDealError.
 * `losesData`: its CARs, present and future, are deleted.
 * `corruptsData`: in each block of its CARs, present and future, some bytes are overwritten.
 * `slow`: deals made from now on take ten times as long to become active, and it delivers ten chunks a second.
 * Lost or corrupted data stays so when the fault is switched off.
 */
export type Fault = (typeof faultNames)[number]

const faultNames = ['offline', 'rejects', 'losesData', 'corruptsData', 'slow'] as const

interface ProviderFault {
  readonly minerId: string
  readonly fault: Fault
}

export const faultSchema = `
  CREATE TABLE IF NOT EXISTS faults (
    miner_id TEXT NOT NULL,
    fault TEXT NOT NULL,
    PRIMARY KEY (miner_id, fault)
  ) STRICT, WITHOUT ROWID;
`

/** The table of faults that are on. Call writing methods inside a transaction. */
export class FaultTable extends tableOf({
  all: 'SELECT miner_id AS "minerId", fault FROM faults ORDER BY miner_id, fault',
  of: 'SELECT fault FROM faults WHERE miner_id = ?',
  add: 'INSERT INTO faults (miner_id, fault) VALUES (?, ?) ON CONFLICT (miner_id, fault) DO NOTHING',
  remove: 'DELETE FROM faults WHERE miner_id = ? AND fault = ?',
}) {
  all(): Promise<ProviderFault[]> {
    return this.sql.all.all<ProviderFault>()
  }

  async of(minerId: string): Promise<ReadonlySet<Fault>> {
    return new Set((await this.sql.of.all<ProviderFault>(minerId)).map(({ fault }) => fault))
  }

  async set(minerId: string, fault: Fault, on: boolean): Promise<void> {
    await (on ? this.sql.add : this.sql.remove).run(minerId, fault)
  }
}

/** Start of a corrupted block. It is constant, so that corrupting a block twice does not restore it. */
const PATTERN = Buffer.from('db5ac3967e11a4f0', 'hex')

/** Applies the faults of a provider to a CAR. A missing CAR is no error. */
export async function applyFaults(car: string, minerId: string, faults: FaultTable): Promise<void> {
  const those = await faults.of(minerId)
  try {
    if (those.has('losesData')) await unlink(car)
    else if (those.has('corruptsData')) await corrupt(car)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
}

/** Overwrites the first bytes of every block on the disk. The CAR itself stays parsable. */
async function corrupt(car: string): Promise<void> {
  const file = await open(car, 'r+')
  try {
    for await (const { blockOffset, end } of sectionsOf(file)) {
      await file.write(PATTERN, 0, Math.min(PATTERN.length, end - blockOffset), blockOffset)
    }
    await file.datasync()
  } finally {
    await file.close()
  }
}

import type { Database, Writer } from '../../database.js'

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

export const faultNames = ['offline', 'rejects', 'losesData', 'corruptsData', 'slow'] as const

export interface ProviderFault {
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

/** Stores which faults are on. */
export class Faults {
  readonly #writer: Writer
  readonly #add
  readonly #remove
  #all: readonly ProviderFault[]

  /** @param db has `faultSchema` */
  constructor(db: Database, writer: Writer) {
    this.#writer = writer
    this.#add = db.prepare('INSERT OR IGNORE INTO faults (miner_id, fault) VALUES (?, ?)')
    this.#remove = db.prepare('DELETE FROM faults WHERE miner_id = ? AND fault = ?')
    this.#all = db.prepare('SELECT miner_id AS minerId, fault FROM faults').all() as ProviderFault[]
  }

  all(): readonly ProviderFault[] {
    return this.#all
  }

  has(minerId: string, fault: Fault): boolean {
    return this.#all.some((one) => one.minerId === minerId && one.fault === fault)
  }

  /** Durable when the promise resolves. */
  async set(minerId: string, fault: Fault, on: boolean): Promise<void> {
    await this.#writer.run(() => (on ? this.#add : this.#remove).run(minerId, fault))
    const others = this.#all.filter((one) => one.minerId !== minerId || one.fault !== fault)
    this.#all = on ? [...others, { minerId, fault }] : others
  }
}

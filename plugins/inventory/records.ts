import { createHash } from 'node:crypto'
import type { JobFailure, Records, State } from 'dealgate/plugin'
import type { InventoryConfiguration } from './configuration.js'
import type { ManifestFile } from './manifest.js'
import type { Marker } from './rows.js'

/** What is known of the inventories of a configuration. All times in ms since 1970. */
export interface InventoryRecord {
  readonly bucket: string
  readonly id: string
  /** The latest one that a schedule has begun. */
  readonly scheduled?: { readonly due: number; readonly jobId: string }
  /** Name of the latest run in keys. */
  readonly name?: string
  /** The latest one that has ended, by a schedule or a request. */
  readonly last?: {
    readonly jobId: string
    readonly ended: number
    /** Present if it is complete. */
    readonly manifest?: string
    readonly files?: number
    readonly rows?: number
    /** Present if it has failed. */
    readonly failure?: JobFailure
  }
}

/** What a run has stored, so that it goes on there after a restart. */
export interface Progress {
  readonly started: number
  /** In keys. */
  readonly name: string
  /** Absent: the listing is complete. */
  readonly next?: Marker
  readonly files: readonly ManifestFile[]
  readonly rows: number
  readonly bytes: number
}

export interface RunInput {
  readonly bucket: string
  /** The configuration as it was when the run was ordered. */
  readonly configuration: InventoryConfiguration
}

/** Durable records of inventories. All methods throw ServiceUnavailable. */
export class InventoryRecords {
  readonly #records: Records<InventoryRecord>
  /** Progress of runs by the id of the job. */
  readonly progress: Records<Progress>

  constructor(state: Pick<State, 'records'>) {
    this.#records = state.records('inventories')
    this.progress = state.records('inventory-runs')
  }

  get(bucket: string, id: string): Promise<InventoryRecord | undefined> {
    return this.#records.get(nameOf(bucket, id))
  }

  async change(bucket: string, id: string, to: (record: InventoryRecord) => InventoryRecord): Promise<void> {
    await this.#records.change(nameOf(bucket, id), (known) => to(known ?? { bucket, id }))
  }

  /** All records, in no order. */
  async *all(): AsyncGenerator<InventoryRecord, void> {
    for await (const [, record] of this.#records.entries()) yield record
  }

  delete({ bucket, id }: InventoryRecord): Promise<void> {
    return this.#records.delete(nameOf(bucket, id))
  }
}

/** Names a configuration, in records and leases. A bucket name holds no `/`. */
export function nameOf(bucket: string, id: string): string {
  return createHash('sha256').update(`${bucket}/${id}`).digest('base64url')
}

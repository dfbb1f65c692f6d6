import { type Records, type RequestOwner, S3Error, type State } from 'dealgate/plugin'
import pMap from 'p-map'
import type { FoundRow } from './filter.js'
import type { FailedRow, Row, TagPair, TaskResult } from './order.js'

/** Rows of a chunk: what is written at once, and what may have to be looked at again after a server has died. */
export const CHUNK_ROWS = 100

/** Most failed tasks that a description of a job names. */
const MAX_FAILURES = 100

/** The words of S3 Batch Operations for a job that has not ended. */
export type BatchPhase =
  | 'Preparing'
  | 'Suspended'
  | 'Ready'
  | 'Active'
  | 'Paused'
  | 'Completing'
  | 'Failing'
  | 'Cancelling'

/** What is on record of a job beside the job itself. */
export interface BatchRecord {
  /** Raised by each run: a run of a server that has lost the job writes nothing more. */
  readonly epoch: number
  /** Absent: as the job was created. */
  readonly priority?: number
  readonly tags?: readonly TagPair[]
  readonly confirmed: boolean
  /**
   * The callers who have confirmed the job, resumed it or had it run again since it was created: the policies of their
   * sessions limit it, too, and conditions see the address of the last one.
   */
  readonly wokenBy?: Pick<RequestOwner, 'session' | 'client'>
  /** What a client has asked for. */
  readonly asked?: 'pause' | 'cancel'
  readonly reason?: string
  /** ms since 1970; absent while it is not suspended. */
  readonly suspended?: number
  /** The manifest that is read, without quotes. */
  readonly etag?: string
  /** Chunks and rows that are on record, until all are. */
  readonly listing: { readonly chunks: number; readonly rows: number; readonly at?: FoundRow['at'] }
  readonly prepared: boolean
  /** Known for objects that a filter has chosen, and after an estimate. */
  readonly bytes: number
  readonly estimated: { readonly chunks: number; readonly failed: number; readonly price?: string }
  /** Chunks that are done. */
  readonly done: number
  readonly succeeded: number
  readonly failed: number
  readonly failures: readonly FailedRow[]
  /** ms */
  readonly active: number
  /** The report, once it is written. */
  readonly report?: { readonly bucket: string; readonly key: string }
  /** The chunks are removed. */
  readonly cleared?: boolean
}

/** Rows of a job, and what became of them. */
export interface Chunk {
  readonly epoch: number
  readonly rows: readonly Row[]
  /** While a run works on it: since when it may have tried rows that `tried` does not name, ms since 1970. */
  readonly begun?: number
  /** Since when a row without a result may have been tried, ms since 1970. */
  readonly tried?: Readonly<Record<number, number>>
  /** Results by row; null for rows without one. Absent for a chunk that no run has worked on. */
  readonly results?: readonly (TaskResult | null)[]
  /** How often a row was refused because the cap of the day was reached. */
  readonly refused?: Readonly<Record<number, number>>
  /** How often a row was put off because the gateway did not answer. */
  readonly delayed?: Readonly<Record<number, number>>
}

export const NEW_RECORD: BatchRecord = {
  ...{ epoch: 0, confirmed: false, prepared: false, bytes: 0, active: 0 },
  ...{ listing: { chunks: 0, rows: 0 }, estimated: { chunks: 0, failed: 0 } },
  ...{ done: 0, succeeded: 0, failed: 0, failures: [] },
}

/** The records of batch jobs. Failures are S3Error ServiceUnavailable. */
export class BatchRecords {
  readonly jobs: Records<BatchRecord>
  readonly #chunks: Records<Chunk>

  constructor(state: Pick<State, 'records'>) {
    this.jobs = state.records<BatchRecord>('batch-jobs')
    this.#chunks = state.records<Chunk>('batch-rows')
  }

  async get(id: string): Promise<BatchRecord> {
    return (await this.jobs.get(id)) ?? NEW_RECORD
  }

  /** Changes the record for a client. */
  async change(id: string, to: (record: BatchRecord) => BatchRecord): Promise<BatchRecord> {
    return (await this.jobs.change(id, (record) => to(record ?? NEW_RECORD))) ?? NEW_RECORD
  }

  /** The rows of a chunk; none for one that is gone. */
  async rows(id: string, number: number): Promise<readonly Row[]> {
    return (await this.#chunks.get(nameOf(id, number)))?.rows ?? []
  }

  /** Removes what is left of a job. */
  async clear(id: string, chunks: number): Promise<void> {
    const numbers = Array.from({ length: chunks }, (_, number) => number)
    await pMap(numbers, (number) => this.#chunks.delete(nameOf(id, number)), { concurrency: 16 })
  }

  /** Begins a run of the job, whose writes end those of all earlier runs. */
  async run(id: string): Promise<BatchRun> {
    const { epoch } = await this.change(id, (record) => ({ ...record, epoch: record.epoch + 1 }))
    return new BatchRun(id, epoch, this, this.#chunks)
  }
}

/** The records of a job as one run of it writes them. */
export class BatchRun {
  readonly id: string
  readonly epoch: number
  readonly #records: BatchRecords
  readonly #chunks: Records<Chunk>

  constructor(id: string, epoch: number, records: BatchRecords, chunks: Records<Chunk>) {
    this.id = id
    this.epoch = epoch
    this.#records = records
    this.#chunks = chunks
  }

  get(): Promise<BatchRecord> {
    return this.#records.get(this.id)
  }

  /** Throws TakenOver when another run has begun. */
  change(to: (record: BatchRecord) => BatchRecord): Promise<BatchRecord> {
    return this.#records.change(this.id, (record) => {
      if (record.epoch !== this.epoch) throw new TakenOver()
      return to(record)
    })
  }

  /** Throws S3Error InternalError for a chunk that is lost. */
  async chunk(number: number): Promise<Chunk> {
    const found = await this.#chunks.get(nameOf(this.id, number))
    if (found) return found
    throw new S3Error('InternalError', { message: 'The store of records has lost rows of this job. Order it again.' })
  }

  /** Throws TakenOver when another run has written the chunk. */
  async put(number: number, chunk: Omit<Chunk, 'epoch'>): Promise<void> {
    await this.#chunks.change(nameOf(this.id, number), (present) => {
      if (present && present.epoch > this.epoch) throw new TakenOver()
      return { ...chunk, epoch: this.epoch }
    })
  }
}

/** Another server runs the job now. */
export class TakenOver extends Error {
  override readonly name = 'TakenOver'
  constructor() {
    super('another server runs this job')
  }
}

function nameOf(id: string, number: number): string {
  return `${id}.${number}`
}

/** The record after a chunk is done. */
export function withResults(record: BatchRecord, { rows, results = [] }: Omit<Chunk, 'epoch'>): BatchRecord {
  const failures = [...record.failures]
  let [succeeded, failed] = [0, 0]
  for (const [at, [bucket, key, versionId]] of rows.entries()) {
    const result = results[at]
    if (result?.ok) succeeded++
    else if (result) {
      failed++
      if (failures.length < MAX_FAILURES)
        failures.push({
          ...{ Bucket: bucket, Key: key, ...(versionId !== undefined && { VersionId: versionId }) },
          ...{ ErrorCode: result.code ?? '', Message: result.message ?? '' },
        })
    }
  }
  return {
    ...record,
    done: record.done + 1,
    succeeded: record.succeeded + succeeded,
    failed: record.failed + failed,
    failures,
  }
}

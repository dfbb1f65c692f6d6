import type { RunningJob } from 'dealgate/plugin'
import type { Live } from './live.js'
import type { BatchOrder } from './order.js'
import { type BatchPhase, type BatchRecord, type BatchRun, TakenOver } from './records.js'

/** A client has asked the job to pause, or to end. */
export class Stopped extends Error {
  override readonly name = 'Stopped'
  constructor(how: 'pause' | 'cancel') {
    super(`a client has asked the job to ${how}`)
  }
}

/** What is on record of a job under way, as its run changes it and as clients see it. */
export class BatchState {
  readonly #live: Live
  readonly #job: RunningJob<BatchOrder>
  readonly #run: BatchRun
  /** What clients see. */
  shown: BatchRecord | undefined

  constructor(live: Live, job: RunningJob<BatchOrder>, run: BatchRun) {
    this.#live = live
    this.#job = job
    this.#run = run
  }

  /** Changes what is on record, at once also for the clients of this process. */
  async change(to: (record: BatchRecord) => BatchRecord): Promise<BatchRecord> {
    const record = await this.#run.change(to)
    this.#live.update(this.#run.id, record)
    return record
  }

  /** Reads what a client may have asked of another server. */
  async look(): Promise<BatchRecord> {
    const record = await this.change((present) => present)
    this.check()
    return record
  }

  /** Throws Stopped, TakenOver, and where the server stops. */
  check(): void {
    this.#job.signal.throwIfAborted()
    if (!this.#job.owned()) throw new TakenOver()
    const asked = this.#live.get(this.#run.id)?.asked
    if (asked !== undefined) throw new Stopped(asked)
  }

  /** Shows how far the job is; without a phase, in the one that it has. */
  show(phase: BatchPhase | undefined, record: BatchRecord): void {
    this.shown = record
    const { listing, succeeded, failed, bytes } = record
    this.#job.report({
      ...(phase !== undefined && { phase }),
      tasks: { total: listing.rows, succeeded, failed },
      bytes: { done: 0, total: bytes },
    })
  }
}

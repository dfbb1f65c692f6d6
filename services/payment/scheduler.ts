import { DueWork } from '../due-work.js'
import type { ServicesLog } from '../log.js'
import type { Network } from '../network/network.js'
import { type Connection, type Database, pages, statements } from '../store/database.js'
import { epochsOf, type Retention } from './contents/retention.js'
import type { Dealing } from './dealing/dealing.js'
import type { Payments } from './embedded-payments.js'
import { MAX_LOCK_DAYS } from './prices.js'

const BATCH = 100

interface UploadSchedulerDeps {
  readonly db: Database<{ readonly progress: Progress }>
  readonly retention: Retention
  readonly payments: Payments
  readonly network: Network
  readonly seconds: () => number
  readonly log: ServicesLog
  /** Absent: no deals are made for uploads. */
  readonly dealing?: Dealing
}

/**
 * Moves uploads by the epochs of the network: a payment makes one paid; one without a deal at the deadline of its
 * payment can be refunded, and is; what is needed no more is removed. Dealing goes on beside it, which may take long.
 * Every process does it, so that its readers see the present: each step is one transaction, which looks whether it is
 * due. One process at a time deals.
 */
export class UploadScheduler {
  readonly #deps: UploadSchedulerDeps
  readonly #work: DueWork
  readonly #deals: DueWork
  /** Epoch at which dealing last went on. */
  #dealtAt = -1

  constructor(deps: UploadSchedulerDeps) {
    this.#deps = deps
    const { network, db, retention, dealing, log } = deps
    const { progress } = db.read
    this.#work = new DueWork({
      network,
      isDue: async () =>
        retention.isDue() || (await progress.anyDue(network.epoch())) || (await progress.anyFreeDue(this.#freeSince())),
      pass: (stop) => this.#pass(stop),
      failed: (err) => log.warn({ err }, 'Could not move all uploads that are due.'),
    })
    this.#deals = new DueWork({
      network,
      isDue: async () => (await dealing?.anyOpen()) === true,
      pass: async (stop) => dealing?.run(stop),
      failed: (err) => log.warn({ err }, 'Could not go on with the deals of uploads. Trying again.'),
    })
  }

  start(): void {
    this.#work.start()
    this.#deals.start()
  }

  /**
   * Resolves when everything that is due by the current epoch has moved, so that a reader sees the present. Deals go on
   * in the background, once per epoch.
   */
  async catchUp(): Promise<void> {
    const { network, dealing } = this.#deps
    if (this.#dealtAt !== network.epoch() && (await dealing?.anyOpen())) {
      this.#dealtAt = network.epoch()
      this.#deals.kick()
    }
    await this.#work.catchUp()
  }

  async stop(): Promise<void> {
    await Promise.all([this.#work.stop(), this.#deals.stop()])
    await this.#deps.dealing?.stop()
  }

  /** Free uploads of before have as long for a deal as a payment is locked. */
  #freeSince(): number {
    const { network } = this.#deps
    return network.epoch() - epochsOf(MAX_LOCK_DAYS, network)
  }

  async #pass(stop: AbortSignal): Promise<void> {
    const { db, payments, retention, network, seconds } = this.#deps
    await db.transaction(({ progress }) => progress.markAllPaid())
    const epoch = network.epoch()
    for (let marked = BATCH; marked === BATCH && !stop.aborted; ) {
      marked = await db.transaction(({ progress }) => progress.markRefundable(epoch, BATCH))
    }
    const freeSince = this.#freeSince()
    if (await db.read.progress.anyFreeDue(freeSince)) {
      await db.transaction(({ progress }) => progress.endFree(freeSince))
    }
    for await (const due of pages('id', 0, (after) => db.read.progress.refundable(after, BATCH))) {
      for (const { id, wCid } of due) {
        if (stop.aborted) return
        if (!(await payments.refund(wCid, seconds()))) continue
        await db.transaction(({ progress }) => progress.markRefunded(id))
      }
    }
    if (retention.isDue()) await retention.run()
  }
}

/** How uploads move from one status to the next. Call writing methods inside a transaction. */
export class Progress {
  readonly #sql

  constructor(connection: Connection) {
    const late = `locks JOIN uploads USING (w_cid) WHERE is_open = 1 AND deadline_epoch <= ?
      AND status IN ('Paid', 'TaskCreated')
      AND NOT EXISTS (SELECT 1 FROM offline_deals WHERE car = uploads.car AND status = 'Active')`
    const freeLate = `is_free = 1 AND status IN ('Free', 'TaskCreated') AND created_epoch <= ?
      AND NOT EXISTS (SELECT 1 FROM offline_deals WHERE car = uploads.car AND status = 'Active')`
    this.#sql = statements(connection, {
      markPaid: "UPDATE uploads SET status = 'Paid' WHERE w_cid = ? AND status = 'Pending'",
      markAllPaid:
        "UPDATE uploads SET status = 'Paid' WHERE status = 'Pending' AND w_cid IN (SELECT w_cid FROM locks WHERE is_open = 1)",
      anyLate: `SELECT 1 FROM ${late} LIMIT 1`,
      markRefundable: `UPDATE uploads SET status = 'Refundable' WHERE id IN (SELECT uploads.id FROM ${late} LIMIT ?)`,
      refundable: `SELECT id, w_cid AS "wCid" FROM uploads WHERE status = 'Refundable' AND id > ? ORDER BY id LIMIT ?`,
      // A chain may have taken the refund back meanwhile.
      markRefunded: "UPDATE uploads SET status = 'Refunded' WHERE id = ? AND status = 'Refundable'",
      anyFreeLate: `SELECT 1 FROM uploads WHERE ${freeLate} LIMIT 1`,
      markFreeLate: `UPDATE uploads SET status = 'Refunded' WHERE ${freeLate}`,
    })
  }

  async markPaid(wCid: string): Promise<void> {
    await this.#sql.markPaid.run(wCid)
  }

  /** For payments after which a crash came. */
  async markAllPaid(): Promise<void> {
    await this.#sql.markAllPaid.run()
  }

  async anyDue(epoch: number): Promise<boolean> {
    return (await this.#sql.anyLate.get(epoch)) !== undefined || (await this.#sql.refundable.get(0, 1)) !== undefined
  }

  /**
   * Uploads without a deal at the deadline of their payment can be refunded.
   * @returns how many
   */
  markRefundable(epoch: number, most: number): Promise<number> {
    return this.#sql.markRefundable.run(epoch, most)
  }

  /** True when a free upload of this epoch or before has no deal. */
  async anyFreeDue(epoch: number): Promise<boolean> {
    return (await this.#sql.anyFreeLate.get(epoch)) !== undefined
  }

  /** Free uploads of this epoch or before without a deal are over: nothing is locked that could be refunded. */
  async endFree(epoch: number): Promise<void> {
    await this.#sql.markFreeLate.run(epoch)
  }

  /** Refundable uploads with a number above `last`, in the order of their numbers. */
  refundable(last: number, most: number): Promise<{ readonly id: number; readonly wCid: string }[]> {
    return this.#sql.refundable.all(last, most)
  }

  async markRefunded(id: number): Promise<void> {
    await this.#sql.markRefunded.run(id)
  }
}

import { DAY_SECONDS } from '../../../common/time.js'
import { type Database, pages, statements, type Writer } from '../../database.js'
import type { DealFile, Network } from '../../network/network.js'
import type { Wallets } from '../wallets.js'
import type { ContentStore } from './content-store.js'
import { CONTENT_COLUMNS, type Content } from './content-table.js'

/** An upload can be paid for so long, and is removed a day later: a payment in progress must not lose it. */
export const PAYABLE_DAYS = 7
const UNPAID_DAYS = PAYABLE_DAYS + 1

const SWEEP_SECONDS = 3600

/** Most uploads or contents of one transaction. */
const BATCH = 100

/** Epochs of so many days, as the network counts the time. */
export function epochsOf(days: number, { epochSeconds }: Pick<Network, 'epochSeconds'>): number {
  return Math.ceil((days * DAY_SECONDS) / epochSeconds)
}

interface RetentionDeps {
  readonly table: RetentionTable
  readonly wallets: Pick<Wallets, 'before' | 'forgetEmpty'>
  readonly contents: Pick<ContentStore, 'release'>
  readonly writer: Writer
  readonly network: Pick<Network, 'epoch' | 'epochSeconds'>
  readonly seconds: () => number
}

/**
 * Removes what is not needed any more: unpaid uploads after an age, contents without an upload, those of refunded
 * uploads, and those whose deals have ended, and wallets that have nothing. When room is short, the copies of contents
 * that storage providers have go, too.
 */
export class Retention {
  readonly #deps: RetentionDeps
  #sweptAt: number | undefined

  constructor(deps: RetentionDeps) {
    this.#deps = deps
  }

  /** Call it before anything else. */
  async open(): Promise<void> {
    const { table, writer, network } = this.#deps
    await writer.run(() => table.dateUploads(network.epoch()))
  }

  /** True once per hour of the network, and after a start. */
  isDue(): boolean {
    const { network } = this.#deps
    const passed = network.epoch() - (this.#sweptAt ?? Number.NEGATIVE_INFINITY)
    return passed * network.epochSeconds >= SWEEP_SECONDS
  }

  async run(): Promise<void> {
    const { table, writer, network } = this.#deps
    const epoch = network.epoch()
    this.#sweptAt = epoch
    const old = epoch - epochsOf(UNPAID_DAYS, network)
    for (let removed = BATCH; removed === BATCH; ) removed = await writer.run(() => table.removeUnpaid(old, BATCH))
    for (const next of pages('id', 0, (after) => table.contents(after, BATCH))) {
      const unneeded = next.filter(({ id }) => !table.isNeeded(id, epoch))
      if (unneeded.length > 0) await this.#remove(unneeded, epoch)
    }
    await this.#forgetWallets()
  }

  /** Wallets that signed in and did nothing more, once their tokens have expired. */
  async #forgetWallets(): Promise<void> {
    const { wallets, writer, seconds } = this.#deps
    const expired = seconds() - 2 * DAY_SECONDS
    for (const next of pages('id', 0, (after) => wallets.before(expired, after, BATCH))) {
      await writer.run(() => {
        for (const { id } of next) wallets.forgetEmpty(id)
      })
    }
  }

  /**
   * Gives up the oldest copy that a storage provider has, too.
   * @returns false when there is none
   */
  async giveUp(): Promise<boolean> {
    const { table, contents, network } = this.#deps
    let given = false
    await contents.release(() => {
      const stored = table.stored(network.epoch(), 1)
      for (const { id } of stored) table.giveUp(id)
      given = stored.length > 0
      return stored
    })
    return given
  }

  /** @param contents that nothing needed a moment ago */
  #remove(contents: readonly Content[], epoch: number): Promise<void> {
    const { table } = this.#deps
    return this.#deps.contents.release(() => {
      const gone = contents.flatMap(({ id }) => (table.isNeeded(id, epoch) ? [] : (table.find(id) ?? [])))
      for (const { id } of gone) table.forget(id)
      return gone.filter(({ place }) => place === 'here')
    })
  }
}

/** A deal that has an upload, and the upload in it. */
interface ContentSource extends Pick<DealFile, 'path' | 'size'> {
  readonly dealCid: string
  /** CID of the upload in the CAR of the deal. */
  readonly cid: string
}

/** A deal of the upload that has not ended at an epoch. */
const LASTING = 'EXISTS (SELECT 1 FROM offline_deals WHERE offline_deals.car = uploads.car AND end_epoch > ?)'

/** An upload whose content nothing but this service has. */
const OPEN = "status NOT IN ('Success', 'Refunded')"

/** Which uploads and contents go, and when. Call writing methods inside a transaction. */
export class RetentionTable {
  readonly #sql

  constructor(db: Database) {
    const given = `uploads.content = contents.id AND packed_cid IS NOT NULL AND status = 'Success' AND ${LASTING}`
    this.#sql = statements(db, {
      date: 'UPDATE uploads SET created_epoch = ? WHERE created_epoch IS NULL',
      unpaid: `SELECT id FROM uploads WHERE status = 'Pending' AND created_epoch <= ?
        AND NOT EXISTS (SELECT 1 FROM locks WHERE locks.w_cid = uploads.w_cid) LIMIT ?`,
      removeMint: 'DELETE FROM mints WHERE upload = ?',
      removeUpload: 'DELETE FROM uploads WHERE id = ?',
      contents: `SELECT ${CONTENT_COLUMNS} FROM contents WHERE place <> 'gone' AND id > ? ORDER BY id LIMIT ?`,
      find: `SELECT ${CONTENT_COLUMNS} FROM contents WHERE id = ?`,
      isNeeded: `SELECT 1 FROM uploads WHERE content = ? AND (${OPEN} OR (status = 'Success' AND ${LASTING})) LIMIT 1`,
      hasUpload: 'SELECT 1 FROM uploads WHERE content = ? LIMIT 1',
      removeBlocks: 'DELETE FROM blocks WHERE content = ?',
      removeContent: 'DELETE FROM contents WHERE id = ?',
      setPlace: 'UPDATE contents SET place = ? WHERE id = ?',
      stored: `SELECT ${CONTENT_COLUMNS} FROM contents WHERE place = 'here' AND EXISTS (SELECT 1 FROM uploads WHERE ${given})
        AND NOT EXISTS (SELECT 1 FROM uploads WHERE content = contents.id AND ${OPEN}) ORDER BY id LIMIT ?`,
      source: `SELECT deal_cid AS dealCid, w_cid AS wCid, packed_cid AS cid, file_size AS size
        FROM uploads JOIN offline_deals ON offline_deals.car = uploads.car
        WHERE content = ? AND packed_cid IS NOT NULL AND uploads.status = 'Success'
          AND offline_deals.status = 'Success' AND end_epoch > ? ORDER BY end_epoch DESC LIMIT 1`,
    })
  }

  /** Uploads of a former version are as old as this epoch. */
  dateUploads(epoch: number): void {
    this.#sql.date.run(epoch)
  }

  /**
   * Removes uploads that were made at this epoch or before, and never paid.
   * @returns how many
   */
  removeUnpaid(epoch: number, most: number): number {
    const ids = this.#sql.unpaid.all(epoch, most).map(({ id }) => id as number)
    for (const id of ids) {
      this.#sql.removeMint.run(id)
      this.#sql.removeUpload.run(id)
    }
    return ids.length
  }

  /** The contents that are somewhere, in the order of their numbers, after one of them. */
  contents(after: number, most: number): Content[] {
    return this.#sql.contents.all(after, most) as Content[]
  }

  find(content: number): Content | undefined {
    return this.#sql.find.get(content) as Content | undefined
  }

  isNeeded(content: number, epoch: number): boolean {
    return this.#sql.isNeeded.get(content, epoch) !== undefined
  }

  /** The content is nowhere from now on. Its row stays while uploads name it. */
  forget(content: number): void {
    this.#sql.removeBlocks.run(content)
    if (this.#sql.hasUpload.get(content) === undefined) this.#sql.removeContent.run(content)
    else this.#sql.setPlace.run('gone', content)
  }

  /**
   * Contents here that storage providers have, too, for deals that last, and that no upload on its way needs. Oldest
   * first.
   */
  stored(epoch: number, most: number): Content[] {
    return this.#sql.stored.all(epoch, most) as Content[]
  }

  /** Only storage providers have the content from now on. */
  giveUp(content: number): void {
    this.#sql.setPlace.run('provider', content)
  }

  /** The deal from which a content comes back. */
  sourceOf(content: number, epoch: number): ContentSource | undefined {
    const row = this.#sql.source.get(content, epoch) as (Omit<ContentSource, 'path'> & { wCid: string }) | undefined
    return row && { dealCid: row.dealCid, path: [row.wCid], cid: row.cid, size: row.size }
  }
}

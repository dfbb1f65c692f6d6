import { DAY_SECONDS } from '../../../common/time.js'
import type { DealFile, Network } from '../../network/network.js'
import { type Connection, type Database, pages, statements } from '../../store/database.js'
import type { Wallets } from '../wallets.js'
import type { ContentStore, ContentTables } from './content-store.js'
import { CONTENT_COLUMNS, type Content } from './content-table.js'

/** An upload can be paid for so long, and is removed a day later: a payment in progress must not lose it. */
export const PAYABLE_DAYS = 7
const UNPAID_DAYS = PAYABLE_DAYS + 1

const SWEEP_SECONDS = 3600

/** Most uploads or contents of one transaction. */
const MAX_BATCH = 100

/** Epochs of so many days, as the network counts the time. */
export function epochsOf(days: number, { epochSeconds }: Pick<Network, 'epochSeconds'>): number {
  return Math.ceil((days * DAY_SECONDS) / epochSeconds)
}

interface RetentionTables extends ContentTables {
  readonly retention: RetentionTable
  readonly wallets: Wallets
}

interface RetentionDeps {
  readonly db: Database<RetentionTables>
  readonly contents: Pick<ContentStore<RetentionTables>, 'release' | 'sweep'>
  readonly network: Pick<Network, 'epoch' | 'epochSeconds'>
  readonly seconds: () => number
}

/**
 * Removes what is not needed any more: unpaid uploads after an age, contents without an upload, those of refunded
 * uploads, and those whose deals have ended, and wallets that have nothing. When room is short, the copies of contents
 * that storage providers have go, too. Every process does it: each transaction looks whether it is needed still.
 */
export class Retention {
  readonly #deps: RetentionDeps
  #sweptAt: number | undefined
  /** Epoch at which files without a content were last removed: a start does that. */
  #cleanedAt = 0

  constructor(deps: RetentionDeps) {
    this.#deps = deps
  }

  /** Call it before anything else. */
  async open(): Promise<void> {
    const { db, network } = this.#deps
    this.#cleanedAt = network.epoch()
    await db.transaction(({ retention }) => retention.dateUploads(network.epoch()))
  }

  /** True once per hour of the network, and after a start. */
  isDue(): boolean {
    const { network } = this.#deps
    const passed = network.epoch() - (this.#sweptAt ?? Number.NEGATIVE_INFINITY)
    return passed * network.epochSeconds >= SWEEP_SECONDS
  }

  async run(): Promise<void> {
    const { db, contents, network } = this.#deps
    const table = db.read.retention
    const epoch = network.epoch()
    const old = epoch - epochsOf(UNPAID_DAYS, network)
    for (let removed = MAX_BATCH; removed === MAX_BATCH; ) {
      removed = await db.transaction(({ retention }) => retention.removeUnpaid(old, MAX_BATCH))
    }
    for await (const next of pages('id', 0, (after) => table.contents(after, MAX_BATCH, epoch))) {
      const unneeded = next.filter(({ needed }) => needed === 0)
      if (unneeded.length > 0) await this.#remove(unneeded, epoch)
    }
    await this.#forgetWallets()
    // The sweep removes what a process that died has left: a start leaves young files to the others.
    if (db.shared && epoch - this.#cleanedAt >= epochsOf(1, network)) {
      await contents.sweep()
      this.#cleanedAt = epoch
    }
    // A sweep that fails is repeated at the next epoch.
    this.#sweptAt = epoch
  }

  /** Wallets that signed in and did nothing more, once their tokens have expired. */
  async #forgetWallets(): Promise<void> {
    const { db, seconds } = this.#deps
    const expired = seconds() - 2 * DAY_SECONDS
    for await (const next of pages('id', 0, (after) => db.read.wallets.before(expired, after, MAX_BATCH))) {
      await db.transaction(async ({ wallets }) => {
        for (const { id } of next) await wallets.forgetEmpty(id)
      })
    }
  }

  /**
   * Gives up the oldest copy that a storage provider has, too.
   * @returns false when there is none
   */
  async giveUp(): Promise<boolean> {
    const { contents, network } = this.#deps
    const given = await contents.release(async ({ retention }) => {
      const stored = await retention.stored(network.epoch(), 1)
      for (const { id } of stored) await retention.giveUp(id)
      return stored
    })
    return given > 0
  }

  /** @param contents that nothing needed a moment ago */
  #remove(contents: readonly Content[], epoch: number): Promise<number> {
    return this.#deps.contents.release(async ({ retention }) => {
      const gone: Content[] = []
      for (const { id } of contents) {
        const content = (await retention.isNeeded(id, epoch)) ? undefined : await retention.find(id)
        if (content !== undefined) gone.push(content)
      }
      for (const { id } of gone) await retention.forget(id)
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

/** The uploads and contents that go, and when. Call writing methods inside a transaction. */
export class RetentionTable {
  readonly #sql

  constructor(connection: Connection) {
    const given = `uploads.content = contents.id AND packed_cid IS NOT NULL AND status = 'Success' AND ${LASTING}`
    const needed = `(${OPEN} OR (status = 'Success' AND ${LASTING}))`
    this.#sql = statements(connection, {
      date: 'UPDATE uploads SET created_epoch = ? WHERE created_epoch IS NULL',
      unpaid: `SELECT id FROM uploads WHERE status = 'Pending' AND created_epoch <= ?
        AND NOT EXISTS (SELECT 1 FROM locks WHERE locks.w_cid = uploads.w_cid) LIMIT ?`,
      removeMint: 'DELETE FROM mints WHERE upload = ?',
      removeUpload: 'DELETE FROM uploads WHERE id = ?',
      contents: `SELECT ${CONTENT_COLUMNS}, CASE WHEN EXISTS (SELECT 1 FROM uploads WHERE content = contents.id AND ${needed})
          THEN 1 ELSE 0 END AS needed
        FROM contents WHERE place <> 'gone' AND id > ? ORDER BY id LIMIT ?`,
      find: `SELECT ${CONTENT_COLUMNS} FROM contents WHERE id = ?`,
      isNeeded: `SELECT 1 FROM uploads WHERE content = ? AND ${needed} LIMIT 1`,
      hasUpload: 'SELECT 1 FROM uploads WHERE content = ? LIMIT 1',
      removeBlocks: 'DELETE FROM blocks WHERE content = ?',
      removeContent: 'DELETE FROM contents WHERE id = ?',
      setPlace: 'UPDATE contents SET place = ? WHERE id = ?',
      stored: `SELECT ${CONTENT_COLUMNS} FROM contents WHERE place = 'here' AND EXISTS (SELECT 1 FROM uploads WHERE ${given})
        AND NOT EXISTS (SELECT 1 FROM uploads WHERE content = contents.id AND ${OPEN}) ORDER BY id LIMIT ?`,
      source: `SELECT deal_cid AS "dealCid", w_cid AS "wCid", packed_cid AS cid, file_size AS size
        FROM uploads JOIN offline_deals ON offline_deals.car = uploads.car
        WHERE content = ? AND packed_cid IS NOT NULL AND uploads.status = 'Success'
          AND offline_deals.status = 'Success' AND end_epoch > ? ORDER BY end_epoch DESC LIMIT 1`,
    })
  }

  /** Uploads of a former version are as old as this epoch. */
  async dateUploads(epoch: number): Promise<void> {
    await this.#sql.date.run(epoch)
  }

  /**
   * Removes uploads that were made at this epoch or before, and never paid.
   * @returns how many
   */
  async removeUnpaid(epoch: number, most: number): Promise<number> {
    const unpaid = await this.#sql.unpaid.all<{ id: number }>(epoch, most)
    for (const { id } of unpaid) {
      await this.#sql.removeMint.run(id)
      await this.#sql.removeUpload.run(id)
    }
    return unpaid.length
  }

  /**
   * The contents that are somewhere, in the order of their numbers, after one of them, and whether an upload needs them
   * at an epoch: 1 or 0.
   */
  contents(after: number, most: number, epoch: number): Promise<(Content & { readonly needed: number })[]> {
    return this.#sql.contents.all(epoch, after, most)
  }

  find(content: number): Promise<Content | undefined> {
    return this.#sql.find.get<Content>(content)
  }

  async isNeeded(content: number, epoch: number): Promise<boolean> {
    return (await this.#sql.isNeeded.get(content, epoch)) !== undefined
  }

  /** The content is nowhere from now on. Its row stays while uploads name it. */
  async forget(content: number): Promise<void> {
    await this.#sql.removeBlocks.run(content)
    if ((await this.#sql.hasUpload.get(content)) === undefined) await this.#sql.removeContent.run(content)
    else await this.#sql.setPlace.run('gone', content)
  }

  /**
   * Contents here that storage providers have, too, for deals that last, and that no upload on its way needs. Oldest
   * first.
   */
  stored(epoch: number, most: number): Promise<Content[]> {
    return this.#sql.stored.all<Content>(epoch, most)
  }

  /** Records that storage providers alone have the content from now on. */
  async giveUp(content: number): Promise<void> {
    await this.#sql.setPlace.run('provider', content)
  }

  /** The deal from which a content comes back. */
  async sourceOf(content: number, epoch: number): Promise<ContentSource | undefined> {
    const row = await this.#sql.source.get<Omit<ContentSource, 'path'> & { readonly wCid: string }>(content, epoch)
    return row && { dealCid: row.dealCid, path: [row.wCid], cid: row.cid, size: row.size }
  }
}

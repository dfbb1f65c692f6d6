import { type Database, statements, type Writer } from '../../database.js'
import { sortable } from '../units.js'
import type { Task, TaskStatus, TaskTerms } from './task.js'

/** A task that was posted, and the digest of the request that posted it. */
interface PostedTask {
  readonly task: Task
  readonly digest: string
}

/** What a user has that is not done. */
export interface OpenTasks {
  readonly tasks: number
  /** Deals of these tasks that are neither active nor given up. */
  readonly deals: number
}

/** What the deals of a task have in common. */
export interface DealFacts {
  readonly deals: number
  /** Sizes of the smallest and the largest piece that are known, bytes; null when none is. */
  readonly smallest: number | null
  readonly largest: number | null
  /** Deals that the network knows. */
  readonly sent: number
}

/** Counts of deals that change together with the status of their task. */
export interface Progress {
  readonly status: TaskStatus
  readonly activeDeals: number
  readonly failedDeals: number
  readonly sentDeals: number
}

/** The table of tasks. Call writing methods inside a transaction. */
export class TaskTable {
  readonly #sql

  constructor(db: Database) {
    this.#sql = statements(db, {
      add: `
      INSERT INTO tasks (uuid, user, digest, name, folded_name, description, curated_dataset, is_public, type, miner_id, tags, min_price, max_price,
        expire_days, fast_retrieval, bid_mode, source_id, duration, file_name, created, created_epoch, expires_epoch, status, due)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    `,
      post: `
      UPDATE tasks SET posted = 1, deals = ?1, to_fetch = ?1, smallest_piece = ?2, largest_piece = ?3, sent_deals = ?4,
        status = iif(?4 > 0 AND ?4 = ?1, 'DealSent', status)
      WHERE id = ?5 AND posted = 0
    `,
      drafts: 'SELECT id FROM tasks WHERE posted = 0',
      removeDraftDeals: `
      DELETE FROM deals WHERE id IN (
        SELECT deals.id FROM deals JOIN tasks ON tasks.id = deals.task AND tasks.posted = 0
        WHERE deals.task = ? ORDER BY deals.id LIMIT ?
      )
    `,
      removeDraft: 'DELETE FROM tasks WHERE id = ? AND posted = 0',
      byId: 'SELECT * FROM tasks WHERE id = ? AND posted = 1',
      byUuid: 'SELECT * FROM tasks WHERE uuid = ? AND posted = 1',
      isDue: 'SELECT 1 FROM tasks WHERE posted = 1 AND due IS NOT NULL AND due <= ? LIMIT 1',
      due: 'SELECT id, due FROM tasks WHERE posted = 1 AND due IS NOT NULL AND due <= ? ORDER BY due, id LIMIT ?',
      setDue: 'UPDATE tasks SET due = ? WHERE id = ?',
      assign: 'UPDATE tasks SET status = ?, miner_id = ?, due = NULL WHERE id = ?',
      countBids: 'UPDATE tasks SET bids = bids + ? WHERE id = ?',
      progress:
        'UPDATE tasks SET status = ?, active_deals = ?, failed_deals = ?, sent_deals = ?, to_fetch = to_fetch + ? WHERE id = ?',
      completed: "SELECT count(*) AS count FROM tasks WHERE posted = 1 AND user = ? AND status = 'Completed'",
      open: `
      SELECT count(*) AS tasks, coalesce(sum(deals - active_deals - failed_deals), 0) AS deals FROM tasks
      WHERE posted = 1 AND user = ? AND status IN ('Created', 'Assigned', 'DealSent', 'ProgressWithFailure')
        AND (status = 'Created' OR active_deals + failed_deals < deals)
    `,
      swapDeals: 'UPDATE deals SET task = iif(task = ?1, ?2, ?1) WHERE task IN (?1, ?2)',
      setFacts: `
      UPDATE tasks SET deals = ?1, to_fetch = ?1, smallest_piece = ?2, largest_piece = ?3, sent_deals = ?4 WHERE id = ?5
    `,
      giveTo: `
      UPDATE tasks SET miner_id = ?, file_name = ?, assignment = ?, due = NULL,
        status = iif(sent_deals > 0 AND sent_deals = deals, 'DealSent', 'Assigned')
      WHERE id = ?
    `,
      assignment: 'SELECT assignment FROM tasks WHERE id = ?',
    })
  }

  /** Adds a draft and returns its id. */
  draft(task: NewTask): number {
    const { lastInsertRowid } = this.#sql.add.run(
      task.uuid,
      task.user,
      task.digest,
      task.name,
      task.name.toLowerCase(),
      task.description,
      task.curatedDataset,
      task.isPublic ? 1 : 0,
      task.type,
      task.minerId,
      task.tags.join(','),
      task.minPrice === null ? null : sortable(task.minPrice),
      task.maxPrice === null ? null : sortable(task.maxPrice),
      task.expireDays,
      task.fastRetrieval ? 1 : 0,
      task.bidMode,
      task.sourceId,
      task.duration,
      task.fileName,
      task.created,
      task.createdEpoch,
      task.expiresEpoch,
      task.minerId === null ? 'Created' : 'Assigned',
      task.due,
    )
    return Number(lastInsertRowid)
  }

  /** Turns a draft into a task. Throws when another task has its UUID: look for that first. */
  post(id: number, { deals, smallest, largest, sent }: DealFacts): void {
    this.#sql.post.run(deals, smallest, largest, sent, id)
  }

  /** Ids of all drafts. */
  drafts(): number[] {
    return this.#sql.drafts.all().map((row) => row.id as number)
  }

  /**
   * Removes some deals of a draft, and the draft itself once it has none. Returns true when the draft is removed. A
   * task that is posted stays as it is: a commit that reports an error may have taken place.
   */
  removeSome(draft: number, most: number): boolean {
    if (this.#sql.removeDraftDeals.run(draft, most).changes > 0) return false
    this.#sql.removeDraft.run(draft)
    return true
  }

  find(id: number): Task | undefined {
    const row = this.#sql.byId.get(id)
    return row === undefined ? undefined : taskOf(row)
  }

  findByUuid(uuid: string): PostedTask | undefined {
    const row = this.#sql.byUuid.get(uuid)
    return row === undefined ? undefined : { task: taskOf(row), digest: row.digest }
  }

  anyDue(epoch: number): boolean {
    return this.#sql.isDue.get(epoch) !== undefined
  }

  /** The tasks that are due by then, the longest due first. */
  due(epoch: number, most: number): { readonly id: number; readonly due: number }[] {
    return this.#sql.due.all(epoch, most) as { id: number; due: number }[]
  }

  /** @param due null: never */
  setDue(id: number, due: number | null): void {
    this.#sql.setDue.run(due, id)
  }

  assign(id: number, minerId: string): void {
    this.#sql.assign.run('Assigned', minerId, id)
  }

  /** The deals of a draft become those of a task without a provider, and the draft gets those of the task. */
  takeDeals(id: number, draft: number, { deals, smallest, largest, sent }: DealFacts): void {
    this.#sql.swapDeals.run(id, draft)
    this.#sql.setFacts.run(deals, smallest, largest, sent, id)
  }

  /** @param digest of the request that names the provider */
  giveTo(id: number, minerId: string, fileName: string, digest: string): void {
    this.#sql.giveTo.run(minerId, fileName, digest, id)
  }

  /** Digest of the request by which the poster named the provider; null if no request did. */
  assignmentOf(id: number): string | null {
    return this.#sql.assignment.get(id).assignment
  }

  expire(id: number): void {
    this.#sql.assign.run('ActionRequired', null, id)
  }

  addBids(id: number, count: number): void {
    this.#sql.countBids.run(count, id)
  }

  /** @param toFetch change of the number of deals whose provider shall fetch the CAR */
  setProgress(id: number, { status, activeDeals, failedDeals, sentDeals }: Progress, toFetch: number): void {
    this.#sql.progress.run(status, activeDeals, failedDeals, sentDeals, toFetch, id)
  }

  /** Number of this user's tasks whose deals are all active. */
  completedOf(user: number): number {
    return this.#sql.completed.get(user).count
  }

  /**
   * The user's tasks that look for a provider or have deals in progress. Not the expired ones, nor those of which each
   * deal is active or given up.
   */
  openOf(user: number): OpenTasks {
    return this.#sql.open.get(user) as OpenTasks
  }
}

export interface NewTask extends TaskTerms {
  readonly uuid: string
  readonly user: number
  /** Of the request that posts the task. */
  readonly digest: string
  readonly fileName: string
  readonly created: number
  readonly createdEpoch: number
  readonly expiresEpoch: number | null
  /** Epoch at which the platform looks for bids. */
  readonly due: number | null
}

/** A row of the table of tasks, as SQLite returns it. */
// biome-ignore lint/suspicious/noExplicitAny: the type of the driver for rows
type Row = any

export function taskOf(row: Row): Task {
  return {
    id: row.id,
    uuid: row.uuid,
    user: row.user,
    status: row.status,
    name: row.name,
    description: row.description,
    curatedDataset: row.curated_dataset,
    isPublic: row.is_public === 1,
    type: row.type,
    minerId: row.miner_id,
    tags: row.tags === '' ? [] : row.tags.split(','),
    minPrice: row.min_price === null ? null : BigInt(row.min_price),
    maxPrice: row.max_price === null ? null : BigInt(row.max_price),
    expireDays: row.expire_days,
    fastRetrieval: row.fast_retrieval === 1,
    bidMode: row.bid_mode,
    sourceId: row.source_id,
    duration: row.duration,
    fileName: row.file_name,
    created: row.created,
    createdEpoch: row.created_epoch,
    expiresEpoch: row.expires_epoch,
    smallestPiece: row.smallest_piece,
    largestPiece: row.largest_piece,
    bids: row.bids,
    deals: row.deals,
    activeDeals: row.active_deals,
    failedDeals: row.failed_deals,
    sentDeals: row.sent_deals,
  }
}

/** Deals removed per transaction. */
const BATCH = 2000

/** Removes tasks that were begun and not posted. */
export class Drafts {
  readonly #tasks: TaskTable
  readonly #writer: Writer

  constructor(tasks: TaskTable, writer: Writer) {
    this.#tasks = tasks
    this.#writer = writer
  }

  async remove(draft: number): Promise<void> {
    while (!(await this.#writer.run(() => this.#tasks.removeSome(draft, BATCH))));
  }

  /** Removes those of an earlier process. Call it before any draft is made. */
  async removeAll(): Promise<void> {
    for (const draft of this.#tasks.drafts()) await this.remove(draft)
  }
}

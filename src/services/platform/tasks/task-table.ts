import { Columns } from '../../columns.js'
import { type Database, statements, type Writer } from '../../database.js'
import { sortable } from '../units.js'
import type { Task, TaskStatus, TaskTerms } from './task.js'

interface PostedTask {
  readonly task: Task
  readonly digest: string
}

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
  readonly sent: number
}

export interface Progress {
  readonly status: TaskStatus
  readonly activeDeals: number
  readonly failedDeals: number
  readonly sentDeals: number
}

interface TaskRow extends Task, Pick<NewTask, 'digest' | 'due'> {
  /** In lower case, for searches. */
  readonly foldedName: string
}

/** A price as a text that sorts as the number does. */
const price = {
  write: (value: bigint | null) => (value === null ? null : sortable(value)),
  read: (stored: string | null) => (stored === null ? null : BigInt(stored)),
}

export const TASK = new Columns<TaskRow>({
  isPublic: 'flag',
  tags: 'list',
  minPrice: price,
  maxPrice: price,
  fastRetrieval: 'flag',
})

const ADDED = [
  ...(['uuid', 'user', 'digest', 'name', 'foldedName', 'description', 'curatedDataset', 'isPublic', 'type'] as const),
  ...(['minerId', 'tags', 'minPrice', 'maxPrice', 'expireDays', 'fastRetrieval', 'bidMode', 'sourceId'] as const),
  ...(['duration', 'fileName', 'created', 'createdEpoch', 'expiresEpoch', 'status', 'due'] as const),
]

/** The table of tasks. Call writing methods inside a transaction. */
export class TaskTable {
  readonly #sql

  constructor(db: Database) {
    this.#sql = statements(db, {
      add: TASK.insert('tasks', ADDED),
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

  draft(task: NewTask): number {
    const foldedName = task.name.toLowerCase()
    const status = task.minerId === null ? 'Created' : 'Assigned'
    return Number(this.#sql.add.run(...TASK.values({ ...task, foldedName, status }, ADDED)).lastInsertRowid)
  }

  /** Turns a draft into a task. Throws when another task has its UUID: look for that first. */
  post(id: number, { deals, smallest, largest, sent }: DealFacts): void {
    this.#sql.post.run(deals, smallest, largest, sent, id)
  }

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
    return row === undefined ? undefined : TASK.read(row)
  }

  findByUuid(uuid: string): PostedTask | undefined {
    const row = this.#sql.byUuid.get(uuid)
    return row === undefined ? undefined : { task: TASK.read(row), digest: row.digest }
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
  readonly digest: string
  readonly fileName: string
  readonly created: number
  readonly createdEpoch: number
  readonly expiresEpoch: number | null
  /** Epoch at which the platform looks for bids. */
  readonly due: number | null
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

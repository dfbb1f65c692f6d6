import { PeriodicTask } from '../../../common/time.js'
import { Columns } from '../../columns.js'
import type { ServicesLog } from '../../log.js'
import { type Connection, type Database, statements, type Value } from '../../store/database.js'
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

const TASK = new Columns<TaskRow>({
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

/** A condition on rows of tasks, and the values of its parameters `?`. */
export interface Condition {
  readonly sql: string
  readonly values: readonly Value[]
}

function where(conditions: readonly Condition[]): string {
  return ['posted = 1', ...conditions.map(({ sql }) => `(${sql})`)].join(' AND ')
}

function valuesOf(conditions: readonly Condition[]): Value[] {
  return conditions.flatMap(({ values }) => values)
}

/** The table of tasks. Call writing methods inside a transaction. */
export class TaskTable {
  readonly #connection: Connection
  readonly #sql

  constructor(connection: Connection) {
    this.#connection = connection
    this.#sql = statements(connection, {
      add: `${TASK.insert('tasks', ADDED)} RETURNING id`,
      post: `
      UPDATE tasks SET posted = 1, deals = ?1, to_fetch = ?1, smallest_piece = ?2, largest_piece = ?3, sent_deals = ?4,
        status = CASE WHEN ?6 = 1 THEN 'DealSent' ELSE status END
      WHERE id = ?5 AND posted = 0
    `,
      drafts: 'SELECT id FROM tasks WHERE posted = 0 AND created <= ?',
      removeDraftDeals: `
      DELETE FROM deals WHERE id IN (
        SELECT deals.id FROM deals JOIN tasks ON tasks.id = deals.task AND tasks.posted = 0
        WHERE deals.task = ? ORDER BY deals.id LIMIT ?
      )
    `,
      // Excludes a commit of `post` whose outcome is not known.
      holdDraft: 'UPDATE tasks SET posted = 0 WHERE id = ? AND posted = 0',
      removeDraft: 'DELETE FROM tasks WHERE id = ? AND posted = 0',
      byId: 'SELECT * FROM tasks WHERE id = ? AND posted = 1',
      byUuid: 'SELECT * FROM tasks WHERE uuid = ? AND posted = 1',
      isDue: 'SELECT 1 FROM tasks WHERE posted = 1 AND due IS NOT NULL AND due <= ? LIMIT 1',
      due: 'SELECT id, due FROM tasks WHERE posted = 1 AND due IS NOT NULL AND due <= ? ORDER BY due, id LIMIT ?',
      dueOf: 'SELECT due FROM tasks WHERE id = ?',
      setDue: 'UPDATE tasks SET due = ? WHERE id = ?',
      assign: 'UPDATE tasks SET status = ?, miner_id = ?, due = NULL WHERE id = ?',
      countBids: 'UPDATE tasks SET bids = bids + ? WHERE id = ?',
      progress:
        'UPDATE tasks SET status = ?, active_deals = ?, failed_deals = ?, sent_deals = ?, to_fetch = to_fetch + ? WHERE id = ?',
      completed: `SELECT count(*) AS count FROM tasks WHERE posted = 1 AND "user" = ? AND status = 'Completed'`,
      open: `
      SELECT count(*) AS tasks, coalesce(sum(deals - active_deals - failed_deals), 0) AS deals FROM tasks
      WHERE posted = 1 AND "user" = ? AND status IN ('Created', 'Assigned', 'DealSent', 'ProgressWithFailure')
        AND (status = 'Created' OR active_deals + failed_deals < deals)
    `,
      swapDeals: 'UPDATE deals SET task = CASE task WHEN ?1 THEN ?2 ELSE ?1 END WHERE task IN (?1, ?2)',
      setFacts: `
      UPDATE tasks SET deals = ?1, to_fetch = ?1, smallest_piece = ?2, largest_piece = ?3, sent_deals = ?4 WHERE id = ?5
    `,
      giveTo: `
      UPDATE tasks SET miner_id = ?, file_name = ?, assignment = ?, due = NULL,
        status = CASE WHEN sent_deals > 0 AND sent_deals = deals THEN 'DealSent' ELSE 'Assigned' END
      WHERE id = ?
    `,
      assignment: 'SELECT assignment FROM tasks WHERE id = ?',
    })
  }

  async draft(task: NewTask): Promise<number> {
    const foldedName = task.name.toLowerCase()
    const status = task.minerId === null ? 'Created' : 'Assigned'
    const row = await this.#sql.add.get<{ id: number }>(...TASK.values({ ...task, foldedName, status }, ADDED))
    if (row === undefined) throw new Error('The draft of a task has no number.')
    return row.id
  }

  /** Turns a draft into a task. Throws when another task has its UUID: look for that first. */
  async post(id: number, { deals, smallest, largest, sent }: DealFacts): Promise<void> {
    const isSent = sent > 0 && sent === deals ? 1 : 0
    const changed = await this.#sql.post.run(deals, smallest, largest, sent, id, isSent)
    if (changed === 0) throw new Error('The draft of the task is not there any more.')
  }

  /** Drafts that were made by this time, Unix seconds. */
  async drafts(time: number): Promise<number[]> {
    return (await this.#sql.drafts.all<{ id: number }>(time)).map(({ id }) => id)
  }

  /**
   * Removes some deals of a draft, and the draft itself once it has none. Returns true when the draft is removed. A
   * task that is posted stays as it is: a commit that reports an error may have taken place.
   */
  async removeSome(draft: number, most: number): Promise<boolean> {
    if ((await this.#sql.holdDraft.run(draft)) === 0) return true
    if ((await this.#sql.removeDraftDeals.run(draft, most)) > 0) return false
    await this.#sql.removeDraft.run(draft)
    return true
  }

  async find(id: number): Promise<Task | undefined> {
    const row = await this.#sql.byId.get(id)
    return row === undefined ? undefined : TASK.read(row)
  }

  async findByUuid(uuid: string): Promise<PostedTask | undefined> {
    const row = await this.#sql.byUuid.get(uuid)
    if (row === undefined) return undefined
    const task = TASK.read(row)
    return { task, digest: task.digest }
  }

  async anyDue(epoch: number): Promise<boolean> {
    return (await this.#sql.isDue.get(epoch)) !== undefined
  }

  /** The tasks that are due by then, the longest due first. */
  due(epoch: number, most: number): Promise<{ readonly id: number; readonly due: number }[]> {
    return this.#sql.due.all(epoch, most)
  }

  /** Epoch at which it is due; undefined if never. */
  async dueOf(id: number): Promise<number | undefined> {
    return (await this.#sql.dueOf.get<{ due: number | null }>(id))?.due ?? undefined
  }

  /** @param due null: never */
  async setDue(id: number, due: number | null): Promise<void> {
    await this.#sql.setDue.run(due, id)
  }

  async assign(id: number, minerId: string): Promise<void> {
    await this.#sql.assign.run('Assigned', minerId, id)
  }

  /** The deals of a draft become those of a task without a provider, and the draft gets those of the task. */
  async takeDeals(id: number, draft: number, { deals, smallest, largest, sent }: DealFacts): Promise<void> {
    await this.#sql.swapDeals.run(id, draft)
    await this.#sql.setFacts.run(deals, smallest, largest, sent, id)
  }

  /** @param digest of the request that names the provider */
  async giveTo(id: number, minerId: string, fileName: string, digest: string): Promise<void> {
    await this.#sql.giveTo.run(minerId, fileName, digest, id)
  }

  /** Digest of the request by which the poster named the provider; null if no request did. */
  async assignmentOf(id: number): Promise<string | null> {
    return (await this.#sql.assignment.get<{ assignment: string | null }>(id))?.assignment ?? null
  }

  async expire(id: number): Promise<void> {
    await this.#sql.assign.run('ActionRequired', null, id)
  }

  async addBids(id: number, count: number): Promise<void> {
    await this.#sql.countBids.run(count, id)
  }

  /** @param toFetch change of the number of deals whose provider shall fetch the CAR */
  async setProgress(
    id: number,
    { status, activeDeals, failedDeals, sentDeals }: Progress,
    toFetch: number,
  ): Promise<void> {
    await this.#sql.progress.run(status, activeDeals, failedDeals, sentDeals, toFetch, id)
  }

  /** Number of this user's tasks whose deals are all active. */
  async completedOf(user: number): Promise<number> {
    return (await this.#sql.completed.get<{ count: number }>(user))?.count ?? 0
  }

  /**
   * The user's tasks that look for a provider or have deals in progress. Not the expired ones, nor those of which each
   * deal is active or given up.
   */
  async openOf(user: number): Promise<OpenTasks> {
    return (await this.#sql.open.get<OpenTasks>(user)) ?? { tasks: 0, deals: 0 }
  }

  /** The posted tasks that meet all conditions, the newest first. Only the rows of the page itself are read. */
  async page(
    conditions: readonly Condition[],
    { limit, offset }: { readonly limit: number; readonly offset: number },
  ): Promise<Task[]> {
    const ids = `SELECT id FROM tasks WHERE ${where(conditions)} ORDER BY id DESC LIMIT ? OFFSET ?`
    const rows = await this.#connection
      .prepare(`SELECT * FROM tasks WHERE id IN (${ids}) ORDER BY id DESC`)
      .all(...valuesOf(conditions), limit, offset)
    return rows.map((row) => TASK.read(row))
  }

  /** Number of posted tasks that meet all conditions. */
  async count(conditions: readonly Condition[]): Promise<number> {
    const sql = `SELECT count(*) AS count FROM tasks WHERE ${where(conditions)}`
    return (await this.#connection.prepare(sql).get<{ count: number }>(...valuesOf(conditions)))?.count ?? 0
  }
}

interface NewTask extends TaskTerms {
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

/** Age from which no request works on a draft any more, seconds; far more than the clocks of processes differ. */
const LEFT_SECONDS = 3600

/** Removes tasks that were begun and not posted. */
export class Drafts {
  readonly #db: Database<{ readonly tasks: TaskTable }>
  readonly #sweep: PeriodicTask

  constructor(db: Database<{ readonly tasks: TaskTable }>, seconds: () => number, log: ServicesLog) {
    this.#db = db
    this.#sweep = new PeriodicTask(
      () => this.#removeUntil(seconds() - LEFT_SECONDS),
      (err) => log.warn({ err }, 'Could not remove the drafts of tasks.'),
    )
  }

  /** Removes those of processes that have ended. Call it before any draft is made. */
  async start(): Promise<void> {
    if (this.#db.shared) this.#sweep.start(LEFT_SECONDS * 1000)
    else await this.#removeUntil(Number.MAX_SAFE_INTEGER)
  }

  stop(): Promise<void> {
    return this.#sweep.stop()
  }

  async remove(draft: number): Promise<void> {
    while (!(await this.#db.transaction(({ tasks }) => tasks.removeSome(draft, BATCH))));
  }

  async #removeUntil(time: number): Promise<void> {
    for (const draft of await this.#db.read.tasks.drafts(time)) await this.remove(draft)
  }
}

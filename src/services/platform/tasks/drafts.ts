import type { Writer } from '../../database.js'
import type { TaskTable } from './task-table.js'

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

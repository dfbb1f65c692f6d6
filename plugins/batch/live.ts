import type { BatchRecord } from './records.js'

/** What clients have asked of the jobs that run in this process, as far as that is known without the records. */
export class Live {
  readonly #jobs = new Map<string, { readonly owner: string; readonly record: BatchRecord }>()

  get(id: string): BatchRecord | undefined {
    return this.#jobs.get(id)?.record
  }

  /** Counts the jobs of a key pair. */
  of(owner: string): number {
    return [...this.#jobs.values()].filter((job) => job.owner === owner).length
  }

  /** Does nothing for a job that does not run here. */
  update(id: string, record: BatchRecord): void {
    const job = this.#jobs.get(id)
    if (job) this.#jobs.set(id, { ...job, record })
  }

  begin(id: string, owner: string, record: BatchRecord): () => void {
    this.#jobs.set(id, { owner, record })
    return () => this.#jobs.delete(id)
  }
}

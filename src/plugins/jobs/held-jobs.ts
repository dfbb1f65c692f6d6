import type { TaskLease } from '../../state/locks/task-lease.js'

/** Leases of the held jobs that this process created: no other process decides about them. */
export class HeldJobs {
  readonly #leases = new Map<string, TaskLease>()

  add(id: string, lease: TaskLease): void {
    this.#leases.set(id, lease)
  }

  has(id: string): boolean {
    return this.#leases.has(id)
  }

  /** Releases the lease of the job, if there is one. */
  async remove(id: string): Promise<void> {
    const lease = this.#leases.get(id)
    this.#leases.delete(id)
    await lease?.release()
  }

  async removeAll(): Promise<void> {
    for (const id of [...this.#leases.keys()]) await this.remove(id)
  }
}

import type { Job } from '../job.js'
import { hasEnded } from '../records/record.js'

/** Interval at which a job that another process may run is polled, ms. */
const LOOK_MS = 1000

export interface WaitOptions {
  readonly ms: number
  readonly signal?: AbortSignal | undefined
  /**
   * Returns true while this process does not run the job, so that its end must be polled; false if there are no other
   * processes.
   */
  readonly elsewhere: false | (() => boolean)
}

/** The waits for the end of jobs. */
export class Waiters {
  #ended = false
  readonly #waiting = new Map<string, Set<() => void>>()

  /** Wakes those that wait for a job that has ended or was removed. */
  notify(id: string): void {
    for (const wake of this.#waiting.get(id) ?? []) wake()
  }

  /** Ends all waits, present and future. */
  end(): void {
    this.#ended = true
    for (const id of [...this.#waiting.keys()]) this.notify(id)
  }

  /** Waits until the job has ended, `ms` have passed or the signal fires; resolves with the job as it is then. */
  async wait(id: string, { ms, signal, elsewhere }: WaitOptions, read: () => Promise<Job>): Promise<Job> {
    if (this.#ended || ms <= 0) return read()
    const woken = new Promise<void>((resolve) => {
      const set = this.#waiting.get(id) ?? new Set()
      this.#waiting.set(id, set)
      const timer = setTimeout(() => wake(), ms)
      const looking = elsewhere && setInterval(() => elsewhere() && void look(), LOOK_MS)
      const wake = () => {
        clearTimeout(timer)
        if (looking) clearInterval(looking)
        signal?.removeEventListener('abort', wake)
        set.delete(wake)
        if (set.size === 0 && this.#waiting.get(id) === set) this.#waiting.delete(id)
        resolve()
      }
      const look = () => read().then(({ status }) => hasEnded(status) && wake(), wake)
      set.add(wake)
      signal?.addEventListener('abort', wake)
      if (signal?.aborted) wake()
      // The job may have ended already; a later end notifies us.
      void look()
    })
    await woken
    return read()
  }
}

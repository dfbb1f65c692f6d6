import type { Job } from './job.js'
import { hasEnded } from './record.js'

/** How often a job is looked at that another process may be at, ms. */
const LOOK_MS = 1000

export interface WaitOptions {
  readonly ms: number
  readonly signal?: AbortSignal | undefined
  /** True while nobody in this process would tell of the end of the job; false where there is no other. */
  readonly elsewhere: false | (() => boolean)
}

/** Who waits for the end of which job. */
export class Waiters {
  #ended = false
  readonly #waiting = new Map<string, Set<() => void>>()

  /** The job has ended, or is no more. */
  tell(id: string): void {
    for (const wake of this.#waiting.get(id) ?? []) wake()
  }

  /** From now on nobody waits. */
  end(): void {
    this.#ended = true
    for (const id of [...this.#waiting.keys()]) this.tell(id)
  }

  /** Resolves to the job when it has ended, as it is after `ms` or when the signal fires. */
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
      // It may have ended already; whoever ends it from now on tells us.
      void look()
    })
    await woken
    return read()
  }
}

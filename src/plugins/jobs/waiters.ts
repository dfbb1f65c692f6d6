import { HOUR_MS } from '../../../common/time.js'
import type { Job } from '../../api/jobs.js'
import type { LiveJob } from './live-job.js'
import { hasEnded } from './record.js'

/** Interval at which a job that another process may run is polled, ms. */
const LOOK_MS = 1000

interface WaitOptions {
  readonly ms: number
  readonly signal?: AbortSignal | undefined
  /**
   * Returns true while this process does not run the job, so that its end must be polled; false if there are no other
   * processes.
   */
  readonly elsewhere: false | (() => boolean)
}

export class Waiters {
  #ended = false
  readonly #waiting = new Map<string, Set<() => void>>()

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

/** Time limits for the work of a kind, ms. */
export interface WorkTimes {
  /** Work that was interrupted and does not end within this time is abandoned, and another job takes its place. */
  readonly graceMs: number
  /** When a job has not reported for this time, a warning is logged, and again whenever the time has doubled. */
  readonly silenceMs: number
}

export const defaultWorkTimes: WorkTimes = { graceMs: 30_000, silenceMs: HOUR_MS }

const MAX_TIMER_MS = 2 ** 30

/**
 * Waits for the work of a kind, which may take hours. Once the job was interrupted it waits for `graceMs` at most, then
 * rejects with the reason of the interruption; a later result of the work is discarded.
 * @param silence `logged`: silence is only logged; `ends`: silence also interrupts the work, which can be repeated
 */
export async function attended<T>(
  live: LiveJob,
  { graceMs, silenceMs }: WorkTimes,
  silence: 'logged' | 'ends',
  work: () => Promise<T>,
): Promise<T> {
  let patience = silenceMs
  let listening: NodeJS.Timeout | undefined
  let grace: NodeJS.Timeout | undefined

  const listen = () => {
    const { silentMs } = live
    if (silentMs < silenceMs) patience = silenceMs
    if (silentMs >= patience) {
      live.log.warn({ silentMs: Math.round(silentMs) }, 'a job has not reported for a long time')
      if (silence === 'ends') return live.interrupt('silent')
      patience *= 2
    }
    listening = setTimeout(listen, Math.min(patience - silentMs, MAX_TIMER_MS)).unref()
  }

  let interrupted = () => {}
  const givenUp = new Promise<never>((_, reject) => {
    interrupted = () => {
      grace = setTimeout(() => {
        live.log.warn({ why: live.interruption }, 'an interrupted job does not end and is abandoned')
        reject(live.signal.reason)
      }, graceMs).unref()
    }
  })

  listen()
  if (live.signal.aborted) interrupted()
  else live.signal.addEventListener('abort', interrupted)
  try {
    return await Promise.race([(async () => work())(), givenUp])
  } finally {
    live.signal.removeEventListener('abort', interrupted)
    clearTimeout(listening)
    clearTimeout(grace)
  }
}

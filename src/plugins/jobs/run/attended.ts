import { HOUR_MS } from '../../../common/durations.js'
import type { LiveJob } from './live-job.js'

/** Time limits for the work of a kind, ms. */
export interface Attendance {
  /** Work that was interrupted and does not end within this time is abandoned, and another job takes its place. */
  readonly graceMs: number
  /** When a job has not reported for this time, a warning is logged, and again whenever the time has doubled. */
  readonly silenceMs: number
}

export const usualAttendance: Attendance = { graceMs: 30_000, silenceMs: HOUR_MS }

const LONGEST_TIMER_MS = 2 ** 30

/**
 * Waits for the work of a kind, which may take hours. Once the job was interrupted it waits for `graceMs` at most, then
 * rejects with the reason of the interruption; a later result of the work is discarded.
 * @param silence `told`: silence is only logged; `ends`: silence also interrupts the work, which can be repeated
 */
export async function attended<T>(
  live: LiveJob,
  { graceMs, silenceMs }: Attendance,
  silence: 'told' | 'ends',
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
    listening = setTimeout(listen, Math.min(patience - silentMs, LONGEST_TIMER_MS)).unref()
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

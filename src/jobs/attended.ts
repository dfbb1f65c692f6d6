import type { LiveJob } from './live-job.js'

/** How long a kind's work is waited for, ms. */
export interface Attendance {
  /** What was interrupted and does not end is given up after so long: another job gets its place. */
  readonly graceMs: number
  /** When nothing was heard of it for so long, the log says so, and again whenever that time has doubled. */
  readonly silenceMs: number
}

export const usualAttendance: Attendance = { graceMs: 30_000, silenceMs: 60 * 60_000 }

const LONGEST_TIMER_MS = 2 ** 30

/**
 * Waits for what a kind does with a job, which may take hours. Once the job was interrupted it is waited for `graceMs` at most: then this rejects with the reason of the
 * interruption, and what still comes of the work counts for nothing.
 * @param silence whether it is only told of, or interrupts the work, which can be done again
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
      live.log.warn({ silentMs: Math.round(silentMs) }, 'a job has given no sign of life for long')
      if (silence === 'ends') return live.interrupt('silent')
      patience *= 2
    }
    listening = setTimeout(listen, Math.min(patience - silentMs, LONGEST_TIMER_MS)).unref()
  }

  let interrupted = () => {}
  const givenUp = new Promise<never>((_, reject) => {
    interrupted = () => {
      grace = setTimeout(() => {
        live.log.warn({ why: live.interruption }, 'a job does not end though it was told to, and is given up')
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

import { HOUR_MS } from '../../../common/time.js'
import type { ServicesLog } from '../../log.js'
import type { Database } from '../../store/database.js'
import { JUMP_MS, type LockTimes, type ObjectLocks } from './object-locks.js'

/**
 * Keeps the latest time that the gateway has seen, at which new locks begin. Those who set a lock keep it as well; a
 * clock may be set back while none is set. A clock that jumps ahead raises it by a day an hour: nothing lowers it again
 * when the clock turns out to be wrong, and dates before it are refused.
 */
export class LockClock {
  readonly #db: Database<{ readonly locks: ObjectLocks }>
  readonly #log: ServicesLog
  /** The last jump, by the monotonic clock. The first jump counts an hour after the start, when the time was set. */
  #jumped = performance.now()
  #reported = false

  constructor(db: Database<{ readonly locks: ObjectLocks }>, log: ServicesLog) {
    this.#db = db
    this.#log = log
  }

  async keep(): Promise<void> {
    const times = await this.#db.read.locks.times()
    const { now, seen } = times
    if (seen === null) return
    this.#report(times, seen)
    const jumps = now >= seen + JUMP_MS
    if (jumps && performance.now() < this.#jumped + HOUR_MS) return
    if (jumps) this.#jumped = performance.now()
    await this.#db.transaction(({ locks }) => locks.see(Math.min(now, seen + JUMP_MS)), { locks: [] })
  }

  /** Once, until the clocks agree again. */
  #report({ now, database }: LockTimes, seen: number): void {
    const own = Date.now()
    const differ = seen > now + JUMP_MS || (database !== null && Math.abs(own - database) > JUMP_MS)
    if (differ && !this.#reported) {
      const [clock, latest] = [own, seen].map((ms) => new Date(ms).toISOString())
      this.#log.error(
        { clock, latest, ...(database !== null && { database: new Date(database).toISOString() }) },
        'Clocks differ by more than a day, or one has been ahead: locks begin at the latest time seen, and end by the earlier clock. Set the clocks.',
      )
    }
    this.#reported = differ
  }
}

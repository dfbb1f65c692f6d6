import t, { type Test } from 'tap'
import { DAY_MS, HOUR_MS } from '../../../common/time.js'
import { GatewayError } from '../../../services/gateway/errors.js'
import { LockClock } from '../../../services/gateway/store/lock-clock.js'
import { mustBeFree } from '../../../services/gateway/store/object-locks.js'
import { silentLog } from '../../../services/log.js'
import { onPostgres } from '../engine.js'
import { openIndex } from './open-index.js'

/** Moves the clock of this process, and its monotonic one, until the test ends. */
function moveClocks(t: Test): { by: number; passed: number } {
  const moved = { by: 0, passed: 0 }
  const [{ now }, { now: monotonic }] = [Date, performance]
  Date.now = () => now.call(Date) + moved.by
  performance.now = () => monotonic.call(performance) + moved.passed
  t.teardown(() => {
    Date.now = now
    performance.now = monotonic
  })
  return moved
}

t.test('a lock ends by the earlier clock', async (t) => {
  const db = await openIndex(t)
  const ends = Date.now() + DAY_MS
  await db.transaction(({ locks }) => locks.put('g', { mode: 'COMPLIANCE', ends, hold: 0 }))
  const clocks = moveClocks(t)
  clocks.by = 2 * DAY_MS
  const released = mustBeFree(db.read, 'g', false)
  if (onPostgres) await t.rejects(released, new GatewayError('ObjectLocked'), 'the clock of this process is ahead')
  else await t.resolves(released, 'there is no other clock')
  clocks.by = -2 * DAY_MS
  await t.rejects(mustBeFree(db.read, 'g', false), new GatewayError('ObjectLocked'), 'it was set back')
})

t.test('a clock that jumps ahead raises the latest time by a day an hour', async (t) => {
  const db = await openIndex(t)
  const told: unknown[] = []
  const clock = new LockClock(db, { ...silentLog, error: (fields) => told.push(fields) })
  const latest = async () => (await db.read.locks.times()).seen
  await clock.keep()
  t.equal(await latest(), null, 'no lock was ever made')
  const clocks = moveClocks(t)
  const begun = await db.transaction(({ locks }) => locks.now())
  await clock.keep()
  const first = Number(await latest())
  t.ok(first >= begun && first < begun + HOUR_MS)

  clocks.by = 1000 * DAY_MS
  for (let n = 0; n < 3; n++) {
    await clock.keep()
    await db.transaction(({ locks }) => locks.now())
  }
  // On PostgreSQL, the clock of one process that is ahead has no effect, and the database's goes on.
  const isFirst = async () => Number(await latest()) - first < (onPostgres ? HOUR_MS : 1)
  t.ok(await isFirst(), 'not by a jump')
  for (let hour = 1; hour <= 2; hour++) {
    clocks.passed = hour * HOUR_MS
    await clock.keep()
    await clock.keep()
    if (onPostgres) t.ok(await isFirst())
    else t.equal(await latest(), first + hour * DAY_MS, 'by a day in each hour')
  }
  t.equal(told.length, onPostgres ? 1 : 0)

  clocks.by = -3 * DAY_MS
  const kept = Number(await latest())
  for (let n = 0; n < 2; n++) await clock.keep()
  t.ok(Number(await latest()) >= kept, 'it is never lowered')
  t.equal(told.length, 1, 'and stated once')
  t.match(told, [{ clock: String, latest: String }])
})

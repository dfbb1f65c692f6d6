import t, { type Test } from 'tap'
import { openSpending } from '../../../plugins/deal/deps.js'
import type { Records, State } from '../../../src/api/state.js'
import { createLogger } from '../../../src/common/log.js'
import { openState } from '../../../src/state/open-state.js'
import { temporaryFolder } from '../../support/content/folders.js'

const DAY = 86_400_000
const NOON = Date.UTC(2026, 10, 21, 12)
const none = { all: undefined, bucket: undefined }

async function open(t: Test): Promise<State> {
  const state = await openState({ data: temporaryFolder(t), log: createLogger({ level: 'silent' }) })
  t.teardown(() => state.close())
  return state
}

t.test('no more than a cap is spent, of the bucket and of all, and a job counts once', async (t) => {
  let now = NOON
  const spending = openSpending({ state: await open(t), now: () => now })
  const caps = { all: 100n, bucket: 60n }
  await spending.reserve({ jobId: 'j-1', bucket: 'a', amount: 40n }, caps)
  await spending.reserve({ jobId: 'j-1', bucket: 'a', amount: 40n }, caps)
  t.equal(await spending.spentToday(), 40n)
  await t.rejects(spending.reserve({ jobId: 'j-2', bucket: 'a', amount: 21n }, caps), { code: 'SpendCapReached' })
  await spending.reserve({ jobId: 'j-2', bucket: 'a', amount: 20n }, caps)
  await t.rejects(spending.reserve({ jobId: 'j-3', bucket: 'b', amount: 41n }, caps), { code: 'SpendCapReached' })
  await spending.reserve({ jobId: 'j-3', bucket: 'b', amount: 40n }, caps)
  t.equal(await spending.spentToday('a'), 60n)
  t.equal(await spending.spentToday('constructor'), 0n)
  await t.rejects(spending.reserve({ jobId: 'j-4', bucket: 'c', amount: 1n }, caps), { code: 'SpendCapReached' })
  await spending.release('j-3')
  await spending.release('j-3')
  await spending.release('j-9')
  t.equal(await spending.spentToday(), 60n)
  await spending.reserve({ jobId: 'j-4', bucket: 'c', amount: 40n }, caps)

  now += DAY
  t.equal(await spending.spentToday(), 0n, 'a new day')
  await spending.reserve({ jobId: 'j-2', bucket: 'a', amount: 20n }, caps)
  t.equal(await spending.spentToday(), 20n, 'a job that is tried again on another day counts on that day')
  now -= DAY
  t.equal(await spending.spentToday(), 80n, 'and no longer on the first')
  const ended = (...ids: string[]) => spending.sweep(async (jobId) => ids.includes(jobId))
  await ended('j-3', 'j-9')
  t.equal(await spending.spentToday(), 80n)
  await ended('j-1', 'j-2')
  t.equal(await spending.spentToday(), 40n, 'what jobs have left that ended')
  now += 100 * DAY
  await ended('j-4')
  now -= 100 * DAY
  t.equal(await spending.spentToday(), 0n, 'days long past are forgotten')
})

t.test('jobs at the same time do not exceed a cap together', async (t) => {
  const spending = openSpending({ state: await open(t), now: () => NOON })
  const outcomes = await Promise.allSettled(
    Array.from({ length: 20 }, (_, i) =>
      spending.reserve({ jobId: `j-${i}`, bucket: 'a', amount: 3n }, { all: 10n, bucket: undefined }),
    ),
  )
  t.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 3)
  t.equal(await spending.spentToday(), 9n)
})

t.test('what the process dies over is counted, and counted once', async (t) => {
  const state = await open(t)
  const spending = openSpending({ state: dying(state), now: () => NOON })
  await t.rejects(spending.reserve({ jobId: 'j-1', bucket: 'a', amount: 5n }, none), /power cut/)
  const later = openSpending({ state: state, now: () => NOON })
  t.equal(await later.spentToday(), 5n)
  await later.reserve({ jobId: 'j-1', bucket: 'a', amount: 5n }, none)
  t.equal(await later.spentToday(), 5n)
  await t.rejects(spending.release('j-1'), /power cut/)
  t.equal(await later.spentToday(), 0n)
  await later.reserve({ jobId: 'j-2', bucket: 'a', amount: 1n }, none)
  await later.release('j-1')
  t.equal(await later.spentToday(), 1n)
  await later.reserve({ jobId: 'j-1', bucket: 'a', amount: 5n }, none)
  t.equal(await later.spentToday(), 6n)
})

/** Records of single jobs cannot be written: as if the process had died between the two writes of a change. */
function dying(state: State): Pick<State, 'records' | 'locks' | 'acceptedLoss'> {
  const fail = async () => {
    throw new Error('power cut')
  }
  return {
    locks: state.locks,
    acceptedLoss: state.acceptedLoss,
    records: <T>(name: string): Records<T> => {
      const records = state.records<T>(name)
      if (name !== 'deal-spend-jobs') return records
      return { get: (key) => records.get(key), entries: () => records.entries(), set: fail, change: fail, delete: fail }
    },
  }
}

t.test('what a service lists is counted once after a loss, and gives way to the job that repeats it', async (t) => {
  let loss: string | undefined
  let asked = 0
  const state = { ...(await open(t)), acceptedLoss: async () => loss }
  let now = NOON
  const open2 = () => openSpending({ state, now: () => now })
  const spending = open2()
  const list = async (since: number) => {
    asked++
    t.equal(since, NOON - DAY / 2)
    return [
      { id: 'x', bucket: 'a', amount: 30n },
      { id: 'y', bucket: 'b', amount: 20n },
    ]
  }
  const caps = { all: 100n, bucket: 60n }
  await spending.recover('one', list)
  t.equal(asked, 0, 'nothing was lost')
  await spending.reserve({ jobId: 'j-1', bucket: 'a', amount: 10n }, caps)
  loss = 'first'
  await t.rejects(
    spending.recover('one', async () => {
      throw new Error('the service is down')
    }),
    /is down/,
  )
  await spending.recover('one', list)
  await open2().recover('one', list)
  t.equal(asked, 1)
  t.same([await spending.spentToday(), await spending.spentToday('a'), await spending.spentToday('b')], [60n, 40n, 20n])
  await t.rejects(spending.reserve({ jobId: 'j-2', bucket: 'c', amount: 41n }, caps), { code: 'SpendCapReached' })
  await t.rejects(spending.reserve({ jobId: 'j-2', bucket: 'a', amount: 21n }, caps), { code: 'SpendCapReached' })
  await spending.reserve({ jobId: 'j-3', bucket: 'a', amount: 30n, listedAs: 'x' }, { all: 60n, bucket: 40n })
  t.equal(await spending.spentToday(), 60n, 'the repeated request is the one that was listed')
  await spending.release('j-3')
  t.equal(await spending.spentToday(), 60n, 'a repetition that was refused undoes no expense')
  await spending.recover('two', async () => [{ id: 'y', bucket: 'b', amount: 20n }])
  t.equal(await spending.spentToday(), 60n, 'one expense counts once')
  loss = 'second'
  await Promise.all([spending.recover('one', list), open2().recover('one', list), spending.recover('one', list)])
  t.equal(asked, 2, 'also for jobs that wait for the lock together')
  t.equal(await spending.spentToday(), 60n)
  now += DAY
  t.equal(await spending.spentToday(), 0n)
})

import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { abortableLimit } from '../../src/services/failure-counts.js'

const never = new AbortController().signal

t.test('as many jobs run at the same time as there are slots, first in, first out', async (t) => {
  const limit = abortableLimit(2)
  const started: number[] = []
  const ends: (() => void)[] = []
  const jobs = [0, 1, 2, 3].map((n) =>
    limit(() => {
      started.push(n)
      return new Promise<number>((resolve) => ends.push(() => resolve(n)))
    }, never),
  )
  await delay(0)
  t.same(started, [0, 1])
  ends[1]?.()
  t.equal(await jobs[1], 1)
  await delay(0)
  t.same(started, [0, 1, 2])
  ends[0]?.()
  ends[2]?.()
  await delay(0)
  ends[3]?.()
  t.same(await Promise.all(jobs), [0, 1, 2, 3])
})

t.test('a failure is passed on and frees the slot', async (t) => {
  const limit = abortableLimit(1)
  const failing = limit(() => Promise.reject(new Error('no')), never)
  const next = limit(async () => 'yes', never)
  await t.rejects(failing, { message: 'no' })
  t.equal(await next, 'yes')
})

t.test(
  'a job that waits rejects when its signal aborts, while the slots are still taken, and never starts',
  async (t) => {
    const limit = abortableLimit(1)
    let end = (): void => {}
    const long = limit(() => new Promise<void>((resolve) => (end = resolve)), never)
    const controller = new AbortController()
    let ran = false
    const waiting = limit(async () => {
      ran = true
    }, controller.signal)
    controller.abort(new Error('stopping'))
    await t.rejects(waiting, { message: 'stopping' })
    await t.rejects(
      limit(async () => {}, controller.signal),
      { message: 'stopping' },
      'as does one that comes later',
    )
    end()
    await long
    t.equal(await limit(async () => 'next', never), 'next', 'its slot is free again')
    t.notOk(ran)
  },
)

t.test('a job that has started keeps its slot until it settles, also when its signal aborts', async (t) => {
  const limit = abortableLimit(1)
  const controller = new AbortController()
  let end = (): void => {}
  const running = limit(() => new Promise<string>((resolve) => (end = () => resolve('done'))), controller.signal)
  let nextRan = false
  const next = limit(async () => {
    nextRan = true
  }, never)
  await delay(0)
  controller.abort()
  await delay(0)
  t.notOk(nextRan)
  end()
  t.equal(await running, 'done')
  await next
})

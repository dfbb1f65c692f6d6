import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { PeriodicTask } from '../../src/common/time.js'
import { until } from '../support/waiting.js'

t.test('runs now and again and again, also after a failure, until it is stopped', async (t) => {
  let runs = 0
  const errors: unknown[] = []
  const task = new PeriodicTask(
    async () => {
      runs++
      if (runs === 2) throw new Error('once')
    },
    (error) => errors.push(error),
  )
  task.start(1)
  t.equal(runs, 1, 'the first run does not wait')
  await until('it ran four times', () => runs >= 4)
  t.match(errors, [{ message: 'once' }])
  await task.stop()
  const after = runs
  await delay(20)
  t.equal(runs, after)
})

t.test('a run that is under way is joined, and stopping waits for it', async (t) => {
  let runs = 0
  let end = (): void => {}
  const task = new PeriodicTask(
    () => {
      runs++
      return new Promise<void>((resolve) => {
        end = resolve
      })
    },
    (error) => t.fail(String(error)),
  )
  task.start(1)
  const joined = task.run()
  await delay(20)
  t.equal(runs, 1, 'the interval starts no second run beside it')
  let stopped = false
  const stopping = task.stop().then(() => {
    stopped = true
  })
  await delay(5)
  t.notOk(stopped)
  end()
  await Promise.all([joined, stopping])
  t.equal(runs, 1)
})

import t from 'tap'
import { Pace } from '../../../src/plugins/parts/pace.js'

t.test('one bucket for all tasks, whatever they begin anew', async (t) => {
  let now = 0
  const pace = new Pace(100, 1, () => now)
  t.equal(pace.owedMs(), 0, 'the first page is listed at once')
  pace.count(1000)
  t.ok(Math.abs(pace.owedMs() - 9990) < 1, `another file or run waits for what the last one listed: ${pace.owedMs()}`)
  now = 5000
  pace.count(0)
  t.ok(Math.abs(pace.owedMs() - 4990) < 1, `${pace.owedMs()}`)
  now = 60_000
  t.equal(pace.owedMs(), 0)
  pace.count(100)
  t.ok(pace.owedMs() > 980, 'a pause saves no more than the burst')
})

t.test('no bound, and work that ends', async (t) => {
  const { signal } = new AbortController()
  const free = new Pace(0)
  free.count(1_000_000)
  t.equal(free.owedMs(), 0)
  await free.settled(signal)
  await free.next(signal)
  const slow = new Pace(1, 1)
  slow.count(1000)
  await t.rejects(slow.settled(AbortSignal.abort()), { name: 'AbortError' })
})

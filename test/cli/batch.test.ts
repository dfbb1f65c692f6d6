import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import { Batch } from '../../src/cli/serve/workers/messages.js'

t.test('messages of one turn are sent together, in order', async (t) => {
  const sent: (readonly number[])[] = []
  const batch = new Batch<number>((messages) => sent.push(messages))
  batch.add(1)
  batch.add(2)
  t.same(sent, [], 'nothing before the turn ends')
  await setImmediate()
  t.same(sent, [[1, 2]])

  batch.add(3)
  batch.sendNow(4)
  t.same(sent, [
    [1, 2],
    [3, 4],
  ])
  batch.sendNow(5)
  batch.add(6)
  await setImmediate()
  t.same(sent.slice(2), [[5], [6]], 'each message once')
})

import t from 'tap'
import { SharedRunning } from '../../../src/server/traffic/shared-running.js'
import { noSignals } from '../../../src/state/signals.js'
import { until } from '../../support/waiting.js'

t.test('what is repeated is sent although the number changes and returns', async (t) => {
  const sent: unknown[] = []
  const signals = { ...noSignals, send: (_: string, text: string) => void sent.push(JSON.parse(text)[2]) }
  const running = new SharedRunning(signals, () => 0)
  t.teardown(() => running.close())
  running.changed('key a', 4, 8)
  await until('the number is sent', () => sent.length >= 1)

  running.changed('key a', 3, 8)
  running.changed('key a', 4, 8)
  running.changed('key b', 4, 8)
  await until('the change of another client is sent', () => sent.length >= 2)
  t.same(sent[1], [['key b', 4]], 'a change that was undone is not sent')

  running.tellAgain()
  running.changed('key a', 3, 8)
  running.changed('key a', 4, 8)
  await until('both are sent again', () => sent.length >= 3)
  t.same(sent[2], [
    ['key a', 4],
    ['key b', 4],
  ])
})

import t from 'tap'
import { openSignals } from '../../engines/lasting-signals.js'
import { CHANNEL } from '../../src/state/signals.js'
import { keptLog } from '../support/server/kept-log.js'
import { until } from '../support/waiting.js'

t.test('a connection for signals is made anew until it listens, and after each loss', async (t) => {
  const { log, lines } = keptLog()
  let refusals = 3
  let opened = 0
  let closed = 0
  const current: { heard?: (message: string) => void; lost?: (reason?: unknown) => void } = {}
  const sent: string[] = []
  const { signals, close } = openSignals(
    {
      publish: async (message) => sent.push(message),
      async listen(heard, lost) {
        if (refusals-- > 0) throw new Error(`no right to ${CHANNEL}`)
        opened++
        Object.assign(current, { heard, lost })
        return { close: () => closed++ }
      },
    },
    log,
  )
  const heard: string[] = []
  let missed = 0
  signals.on(
    'lease',
    (text) => heard.push(text),
    () => missed++,
  )
  await until('it listens', () => opened === 1 && missed === 1)
  const warnings = () => lines.filter(({ level }) => level === 40).length
  t.equal(warnings(), 1, 'a user without the right is warned of once')
  current.heard?.('other lease a token')
  t.same(heard, ['a token'])
  const before = current.lost
  before?.(new Error('the connection is lost'))
  before?.()
  t.equal(closed, 1)
  await until('it listens again', () => opened === 2 && missed === 2)
  t.equal(warnings(), 1)
  signals.send('lease', 'mine')
  t.match(sent, [/ lease mine$/])
  close()
  t.equal(closed, 2)
  current.lost?.()
  await new Promise((resolve) => setTimeout(resolve, 300))
  t.equal(opened, 2, 'not after the end')
})

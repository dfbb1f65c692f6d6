import t from 'tap'
import { TokenBuckets } from '../../../../common/client-rate.js'
import type { TrafficBounds } from '../../../../src/server/traffic/gate.js'
import { Traffic } from '../../../../src/server/traffic/traffic.js'
import { SignalBoard } from '../../../../src/state/signals.js'
import { until } from '../../../support/waiting.js'

/** A traffic whose clock the test sets. */
function trafficOf(bounds: TrafficBounds) {
  const time = { ms: 0 }
  return { traffic: new Traffic(bounds, () => time.ms), time }
}

const refusal = (seconds: number) => ({ code: 'SlowDown', status: 503, headers: { 'retry-after': String(seconds) } })

t.test('requests per second of an address, with a burst', async (t) => {
  const { traffic, time } = trafficOf({ perAddress: { requests: { perSecond: 0.5, burst: 3 } } })
  for (let i = 0; i < 3; i++) traffic.admit('192.0.2.1').leave(0)
  t.throws(() => traffic.admit('192.0.2.1'), refusal(2))
  traffic.admit('192.0.2.2').leave(0)
  time.ms += 1000
  t.throws(() => traffic.admit('192.0.2.1'), refusal(1))
  time.ms += 1000
  traffic.admit('192.0.2.1').leave(0)
  t.throws(() => traffic.admit('192.0.2.1'), refusal(2))
  time.ms += 3_600_000
  for (let i = 0; i < 3; i++) traffic.admit('192.0.2.1').leave(0)
  t.throws(() => traffic.admit('192.0.2.1'), refusal(2), 'a pause gives no more than the burst')
})

t.test('an IPv6 network is one address', async (t) => {
  const { traffic } = trafficOf({ perAddress: { requests: { perSecond: 1, burst: 1 } } })
  traffic.admit('2001:db8::1').leave(0)
  t.throws(() => traffic.admit('2001:db8::2'), refusal(1))
  traffic.admit('2001:db8:0:1::1').leave(0)
})

t.test('new bounds count what is in progress', async (t) => {
  const { traffic } = trafficOf({ perKey: { concurrency: 1 } })
  const begin = () => {
    const visit = traffic.admit('192.0.2.1')
    visit.identify('one', 0)
    return visit
  }
  const first = begin()
  traffic.bounds = { perKey: { concurrency: 2 } }
  begin()
  t.throws(begin, refusal(1))
  traffic.bounds = { perKey: { concurrency: 1 } }
  first.leave(0)
  t.throws(begin, refusal(1))
  traffic.bounds = {}
  t.equal(traffic.isBound, false)
  begin()
})

t.test('a slow upload keeps only its own caller out', async (t) => {
  const { traffic, time } = trafficOf({
    total: { bytes: { perSecond: 1000, burst: 1000 } },
    perAddress: { bytes: { perSecond: 100, burst: 100 } },
    perKey: { bytes: { perSecond: 100, burst: 100 } },
  })
  const begin = (key: string, declared: number, received?: () => number) => {
    const visit = traffic.admit('192.0.2.1', received)
    visit.identify(key, declared)
    return visit
  }
  let arrived = 0
  const upload = begin('one', 10_000, () => arrived)
  t.throws(() => begin('one', 0), { message: /with your access key/ })
  begin('two', 0).leave(0)
  for (let n = 0; n < 100; n++) {
    time.ms += 1000
    arrived += 100
    begin('two', 0).leave(0)
  }
  arrived += 300
  time.ms += 1000
  t.throws(() => begin('two', 0), { message: /bytes per second from your network address/ }, 'faster than the rate')
  arrived += 2000
  time.ms += 1000
  t.throws(() => traffic.admit('192.0.2.2'), { message: /from all clients/ })
  upload.leave(arrived)
  time.ms += 23_000
  begin('two', 0).leave(0)
})

t.test('at most 10,000 clients are remembered', async (t) => {
  const buckets = new TokenBuckets({ perSecond: 1, burst: 1 }, () => 0)
  for (let i = 0; i <= 10_000; i++) buckets.take(`client ${i}`, 1)
  t.equal(buckets.wait('client 0', 1), 0, 'the first one is forgotten')
  t.equal(buckets.wait('client 1', 1), 1)
})

t.test('processes on one state count together', async (t) => {
  const boards: SignalBoard[] = []
  const messages: string[] = []
  const publish = (message: string) => {
    messages.push(message)
    for (const board of boards) board.receive(message)
  }
  const bounds: TrafficBounds = {
    total: { bytes: { perSecond: 1, burst: 1000 } },
    perKey: { requests: { perSecond: 0.01, burst: 16 } },
  }
  const processes = Array.from({ length: 2 }, () => {
    const board = new SignalBoard(publish)
    boards.push(board)
    const traffic = new Traffic(bounds, () => 0, board)
    t.teardown(() => traffic.close())
    return traffic
  })
  const [one, two] = processes as [Traffic, Traffic]
  const begin = (traffic: Traffic, bytes = 0) => {
    const visit = traffic.admit('192.0.2.1')
    visit.identify('one', 0)
    visit.leave(bytes)
  }
  begin(one)
  t.equal(messages.length, 0, 'few requests are not told')
  for (let i = 0; i < 15; i++) begin(one)
  t.throws(() => begin(one), { code: 'SlowDown' })
  await until('the other process knows', () => messages.length === 1)
  t.throws(() => begin(two), { code: 'SlowDown' })
  two.admit('192.0.2.1').identify('other', 0)

  two.admit('192.0.2.1').leave(2000)
  await until('the other process knows of the bytes', () => messages.length === 2)
  t.throws(() => one.admit('192.0.2.2'), { code: 'SlowDown', message: /bytes per second from all clients/ })

  for (const odd of ['', '{}', '[1]', '[["key"]]', '[["nothing x",1,1]]', '[["key x",null,1]]'])
    boards[0]?.receive(`- traffic ${odd}`)
})

t.test('processes on one state count requests in progress together', async (t) => {
  const boards: SignalBoard[] = []
  let lost = false
  const time = { ms: 0 }
  const publish = (message: string) => {
    if (!lost) for (const board of boards) board.receive(message)
  }
  const start = () => {
    const board = new SignalBoard(publish)
    boards.push(board)
    const traffic = new Traffic({ perKey: { concurrency: 4 } }, () => time.ms, board)
    t.teardown(() => traffic.close())
    return traffic
  }
  const [one, two] = [start(), start()]
  const begin = (traffic: Traffic) => {
    const visit = traffic.admit('192.0.2.1')
    visit.identify('one', 0)
    return visit
  }
  const refuses = (traffic: Traffic) => {
    try {
      begin(traffic).leave(0)
      return false
    } catch (error) {
      t.match(error, { code: 'SlowDown', message: /requests at the same time with your access key/ })
      return true
    }
  }
  const visits = [begin(one), begin(one), begin(one)]
  t.notOk(refuses(one))
  const fourth = await until('the other process knows of three', () => {
    const visit = begin(two)
    if (refuses(two)) return visit
    visit.leave(0)
    return undefined
  })
  await until('the first one knows of the fourth', () => refuses(one))
  fourth.leave(0)
  await until('the fourth has ended', () => !refuses(one))
  for (const visit of visits) visit.leave(0)

  const third = start()
  for (let n = 0; n < 4; n++) begin(third)
  await until('others know of those of a third process', () => refuses(one) && refuses(two))
  lost = true
  third.close()
  time.ms += 9_000
  t.ok(refuses(one), 'its last message was lost')
  time.ms += 2_000
  t.notOk(refuses(one), 'what is not told again is forgotten')
  lost = false
  for (const odd of [
    '',
    '{}',
    '[1]',
    '["a",1,1]',
    '["a",1,[["key"]]]',
    '["a",1,[["key one",null]]]',
    '["a",[["key one",9]]]',
  ])
    boards[0]?.receive(`- running ${odd}`)
  t.notOk(refuses(one))
  for (const [message, running] of [
    [1, 4],
    [3, 0],
    [2, 4],
  ])
    boards[0]?.receive(`- running ["a",${message},[["key one",${running}]]]`)
  t.notOk(refuses(one), 'an earlier message counts no more')
})

import { connect, type Socket } from 'node:net'
import t from 'tap'
import { Downloads } from '../../../src/http/downloads.js'
import { bytes, MiB, sha256 } from '../../support/content/content.js'
import { startDealgate } from '../../support/server/dealgate.js'
import { presigned, send } from '../../support/sign/send.js'
import { until } from '../../support/waiting.js'

const MINUTE_MS = 60_000

/** Each also fills the buffers of its connection, some MiB. */
const READERS = 40

function scene(bounds: { total: number; perClient: number }) {
  let now = 0
  const downloads = new Downloads(bounds, () => now)
  const cut: string[] = []
  const begin = (name: string, address = '192.0.2.1') => downloads.begin(address, () => cut.push(name))
  return {
    ...{ downloads, cut, begin },
    wait: (ms: number) => {
      now += ms
    },
  }
}

t.test('over the bound, slow downloads end: the slowest first, then the oldest', async (t) => {
  const { downloads, cut, begin, wait } = scene({ total: 4 * MiB, perClient: 4 * MiB })
  const [older, younger, trickle, fast] = [begin('older'), begin('younger'), begin('trickle'), begin('fast')]
  for (const each of [older, younger, trickle, fast]) each.queue(MiB)
  wait(MINUTE_MS)
  trickle.take(1024)
  fast.take(MiB)
  t.same(cut, [], 'while there is room, nothing ends')
  fast.queue(MiB + 1024)
  t.same(cut, [], 'at the bound')
  fast.queue(1)
  t.same(cut, ['older'], 'one is enough')
  t.equal(downloads.queued, 3 * MiB + 1)
  wait(MINUTE_MS)
  trickle.take(1024)
  fast.take(MiB)
  fast.queue(4 * MiB)
  t.same(cut, ['older', 'younger', 'trickle'])
  fast.leave()
  for (const each of [older, younger, trickle]) each.leave()
  t.equal(downloads.queued, 0)
})

t.test('a download that has just begun, or that is fast, does not end', async (t) => {
  const { cut, begin, wait } = scene({ total: MiB, perClient: MiB })
  const fast = begin('fast')
  fast.queue(MiB)
  wait(MINUTE_MS)
  fast.take(MiB)
  fast.queue(MiB)
  const young = begin('young')
  wait(1000)
  young.queue(MiB)
  t.same(cut, [])
})

t.test('one network of clients is bound by itself', async (t) => {
  const { cut, begin, wait } = scene({ total: 100 * MiB, perClient: 2 * MiB })
  const [first, second, other] = [begin('first'), begin('second'), begin('other', '198.51.100.7')]
  for (const each of [first, second, other]) each.queue(MiB)
  wait(MINUTE_MS)
  other.queue(MiB)
  t.same(cut, [])
  second.queue(1)
  t.same(cut, ['first'])
})

t.test('forty readers that read nothing hold few bytes, and others read', async (t) => {
  const server = await startDealgate(t, { args: ['--metrics-port', '0'] })
  const body = bytes('slow', 20 * MiB)
  t.equal((await send(server, { method: 'PUT', target: '/box' })).status, 200)
  t.equal((await send(server, { method: 'PUT', target: '/box/key', body })).status, 200)
  const { hostname, port } = new URL(server.endpoint)
  const target = presigned(server, 'GET', '/box/key').slice(server.endpoint.length)
  const sockets: Socket[] = []
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
  })
  for (let n = 0; n < READERS; n++) {
    const socket = connect(Number(port), hostname).on('error', () => {})
    socket.pause()
    socket.write(`GET ${target} HTTP/1.1\r\nHost: ${hostname}:${port}\r\n\r\n`)
    sockets.push(socket)
  }
  const read = async () => {
    const text = await (await fetch(server.metrics)).text()
    const of = (name: string) => Number(new RegExp(`^${name} (\\d+)`, 'm').exec(text)?.[1])
    return { running: of('dealgate_requests_in_flight'), queued: of('dealgate_downloads_queued_bytes') }
  }
  let [most, last, same] = [0, -1, 0]
  await until('all wait', async () => {
    const { running, queued } = await read()
    most = Math.max(most, queued)
    same = running >= READERS && queued === last ? same + 1 : 0
    last = queued
    return same >= 5
  })
  t.ok(last > 0, 'they wait')
  // The first window of each, and what all share.
  t.ok(most <= READERS * 32 * 1024 + 33 * MiB, `${most} bytes wait`)
  const answer = await send(server, { method: 'GET', target: '/box/key' })
  t.equal(sha256(answer.body), sha256(body))
})

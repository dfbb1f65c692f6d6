import t from 'tap'
import { readCursor, writeCursor } from '../../../plugins/requests/cursor.js'
import { LastRequests } from '../../../plugins/requests/look.js'
import { Ring } from '../../../plugins/requests/ring.js'

function kept(ring: Ring, after = 0): string[] {
  return [...ring.newerThan(after)].map(([number, text]) => `${number}:${text}`)
}

t.test('the ring keeps the last texts within its bounds', async (t) => {
  const ring = new Ring({ requests: 3, bytes: 40 })
  t.same(kept(ring), [])
  for (const number of [1, 2, 3, 4]) ring.add(number * 10, `t${number}`)
  t.same(kept(ring), ['20:t2', '30:t3', '40:t4'], 'no more than so many')
  t.equal(ring.evicted, 10)
  t.same(kept(ring, 25), ['30:t3', '40:t4'])
  t.same(kept(ring, 40), [])
  t.same(
    [...ring.newestFirst()].map(([number]) => number),
    [40, 30, 20],
  )
  ring.add(50, 'x'.repeat(12))
  t.same(kept(ring), ['50:xxxxxxxxxxxx'], 'no more than so many bytes')
  ring.add(60, 'x'.repeat(12))
  ring.add(70, 'y')
  t.same(kept(ring), ['60:xxxxxxxxxxxx', '70:y'], 'what is in the way is evicted, and nothing else')
  ring.add(80, 'z'.repeat(50))
  t.same(kept(ring), ['60:xxxxxxxxxxxx', '70:y'], 'what can never be kept is left out')
})

t.test('the ring agrees with a list, whatever the sizes', async (t) => {
  const ring = new Ring({ requests: 50, bytes: 2000 })
  const all: string[] = []
  let seed = 7
  for (let number = 1; number <= 3000; number++) {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31
    const text = (seed % 3 === 0 ? 'ü\u202e💶' : 'ab').repeat(1 + (seed % 40))
    ring.add(number, text)
    all.push(`${number}:${text}`)
    const has = kept(ring)
    if (has.length === 0 || has.join() !== all.slice(-has.length).join()) t.fail(`after ${number}: ${has}`)
    if (number > 100 && ring.evicted !== number - has.length) t.fail(`${ring.evicted} evicted after ${number}`)
  }
  t.ok(kept(ring).length > 5)
})

const ENDED = {
  ...{ requestId: 'R', operation: 'GetObject', method: 'GET', bucket: 'photos', key: 'a', status: 200, ms: 1 },
  ...{ bytesIn: 0, bytesOut: 1, cut: false, remote: '::1' },
}
const ALL = { all: true, accessKeyId: 'owner', buckets: [] }

t.test('each request has a number of its own, and none is read twice or missed', async (t) => {
  let now = 1000
  const last = new LastRequests(() => now, new Ring({ requests: 10, bytes: 100_000 }))
  const find = (from?: number, max = 100) =>
    last.find({ viewer: ALL, filter: {}, max, ...(from !== undefined && { after: { me: from } }) }, 'me')
  for (let n = 0; n < 5; n++) last.add({ ...ENDED, requestId: `R${n}` })
  now = 900
  last.add({ ...ENDED, requestId: 'back' })
  const first = find(undefined, 2)
  const ids = (found: typeof first) => found.requests.map(([, { requestId }]) => requestId)
  t.same(ids(first), ['R4', 'back'], 'the newest, the oldest of them first, also after the clock was set back')
  last.add({ ...ENDED, requestId: 'later' })
  t.same(ids(find(first.upTo)), ['later'])
  t.notOk(find(first.upTo).lost)
  const page = find(1, 3)
  t.match(page, { more: true, lost: false })
  t.same(ids(page), ['R0', 'R1', 'R2'])
  t.same(ids(find(page.upTo)), ['R3', 'R4', 'back', 'later'])
  for (let n = 0; n < 10; n++) last.add(ENDED)
  t.ok(find(page.upTo).lost, 'the reader was too slow')
})

t.test('what is kept has bounds, and no member that it does not name', async (t) => {
  const last = new LastRequests(() => 1)
  const signer = { accessKeyId: 'k'.repeat(999), account: 'a', session: 's'.repeat(999), secretAccessKey: 'SECRET' }
  const more = { headers: { authorization: 'SECRET' }, query: 'SECRET', signer }
  last.add({ ...ENDED, ...more, key: 'k'.repeat(5000), userAgent: 'u'.repeat(5000) })
  for (const skipped of [
    { operation: 'Live' },
    { operation: 'Ready', status: 503 },
    { operation: 'ListRequests', plugin: 'requests' },
  ])
    last.add({ ...ENDED, ...skipped })
  const { requests } = last.find({ viewer: ALL, filter: {}, max: 10 }, 'me')
  t.equal(requests.length, 1, 'probes and readers of the list are left out')
  const text = JSON.stringify(requests)
  t.notMatch(text, /SECRET/)
  t.ok(text.length < 2500, `${text.length} characters`)
  last.add({ ...ENDED, operation: 'ListRequests', plugin: 'requests', status: 403 })
  t.equal(last.find({ viewer: ALL, filter: { status: '4xx' }, max: 10 }, 'me').requests.length, 1)
})

t.test('a cursor is read as it was written, and a malformed one refused', async (t) => {
  const cursor = new Map([
    ['0a1b2c3d', 1_764_438_511_546_123],
    ['ffffffff', 0],
  ])
  t.same([...readCursor(writeCursor(cursor))], [...cursor])
  const many = new Map([...Array(150).keys()].map((n) => [n.toString(16).padStart(8, '0'), 1]))
  t.equal(readCursor(writeCursor(many)).size, 100)
  for (const wrong of ['', '-', 'x', '0a1b2c3d', '0a1b2c3d.', '0a1b2c3d.-1', '0A1B2C3D.1', '0a1b2c3d.1-'])
    t.throws(() => readCursor(wrong), { code: 'InvalidArgument' }, wrong)
})

import t from 'tap'
import { startInProcess } from '../../support/server/in-process.js'
import { signedRequest } from '../../support/sign/signed-request.js'

const HOUR_MS = 3_600_000

t.test('the activity of the last day', async (t) => {
  let time = Date.UTC(2026, 0, 2, 3, 4, 5)
  const owner = { accessKeyId: 'owner-key', secretAccessKey: 'owner-secret' }
  const limited = {
    ...{ accessKeyId: 'limited-key', secretAccessKey: 'limited-secret' },
    rights: [{ bucket: 'counted', access: 'read' as const }],
  }
  const server = await startInProcess(t, 'full', { now: () => time, identities: [owner, limited] })
  const send = (method: string, path: string, body?: string, keys: typeof owner = owner) =>
    signedRequest(server.endpoint, keys, { method, path, ...(body !== undefined && { body }) })
  const read = async (query: Record<string, string> = {}) => {
    const headers = { accept: 'application/json' }
    const wanted = { method: 'GET', path: '/-/activity/v1', query, headers }
    return JSON.parse((await signedRequest(server.endpoint, owner, wanted)).body)
  }
  const month = () => read({ period: 'month' })
  await send('PUT', '/counted')
  await send('PUT', '/counted/a', 'four')
  await send('GET', '/counted/none')
  await fetch(`${server.endpoint}/-/live`)
  const first = { Start: '2026-01-02T03:00:00.000Z', Requests: 3, ClientErrors: 1, ServerErrors: 0, BytesIn: 4 }
  t.match(await read(), { IntervalSeconds: 300, Intervals: [first] })
  const [{ P50Milliseconds: half, P99Milliseconds: most }] = (await read()).Intervals
  t.ok(half >= 0.25 && most >= half && most <= 65_536, `half of the requests within ${half} ms, 99 % within ${most}`)
  t.match(await send('GET', '/-/activity/v1', undefined, limited), { status: 403 })
  t.match(await month(), {
    IntervalSeconds: 3600,
    Intervals: [{ Start: '2026-01-02T03:00:00.000Z', Requests: 6, ClientErrors: 2, BytesIn: 4, StoredBytes: Number }],
  })

  await server.restart()
  t.match(await month(), { Intervals: [{ StoredBytes: 4 }] }, 'each start takes a sample')
  time += HOUR_MS
  await send('GET', '/counted/a')
  const { Intervals } = await read()
  t.match(Intervals, [
    { ...first, Requests: 8, ClientErrors: 2 },
    { Start: '2026-01-02T04:00:00.000Z', Requests: 1, ServerErrors: 0, BytesIn: 0, BytesOut: 4 },
  ])
  time += 23 * HOUR_MS
  t.match(await read(), { Intervals: [{ Start: '2026-01-02T04:00:00.000Z' }] })
  time += 2 * HOUR_MS
  t.notMatch(JSON.stringify(await read()), '2026-01-02')
  const hours = (await month()).Intervals
  t.match(hours.at(0), { Start: '2026-01-02T03:00:00.000Z', Requests: 8, StoredBytes: 4 })
  t.match(hours.at(1), { Start: '2026-01-02T04:00:00.000Z', Requests: 2, BytesIn: 0, StoredBytes: 4 })
  t.ok(hours.at(-1).FreeBytes > 0, 'the last hour has a sample')
  time += 31 * 24 * HOUR_MS
  t.notMatch(JSON.stringify(await month()), '2026-01-0', 'what is older than 31 days is not shown')
})

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
  const read = async () => {
    const headers = { accept: 'application/json' }
    const { body } = await signedRequest(server.endpoint, owner, { method: 'GET', path: '/-/activity/v1', headers })
    return JSON.parse(body)
  }
  await send('PUT', '/counted')
  await send('PUT', '/counted/a', 'four')
  await send('GET', '/counted/none')
  await fetch(`${server.endpoint}/-/live`)
  const first = { Start: '2026-01-02T03:00:00.000Z', Requests: 3, ClientErrors: 1, ServerErrors: 0, BytesIn: 4 }
  t.match(await read(), { IntervalSeconds: 300, Intervals: [first] })
  t.match(await send('GET', '/-/activity/v1', undefined, limited), { status: 403 })

  await server.restart()
  time += HOUR_MS
  await send('GET', '/counted/a')
  const { Intervals } = await read()
  t.match(Intervals, [
    { ...first, Requests: 5, ClientErrors: 2 },
    { Start: '2026-01-02T04:00:00.000Z', Requests: 1, ServerErrors: 0, BytesIn: 0, BytesOut: 4 },
  ])
  time += 23 * HOUR_MS
  t.match(await read(), { Intervals: [{ Start: '2026-01-02T04:00:00.000Z' }] })
  time += 2 * HOUR_MS
  t.notMatch(JSON.stringify(await read()), '2026-01-02')
})

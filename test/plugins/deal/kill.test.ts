import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { bytes, MiB } from '../../harness/content.js'
import { type Dealgate, startDealgate } from '../../harness/dealgate.js'
import { type Answer, signedRequest } from '../../support/signed-request.js'

/** How often the server dies, and how many deals are being asked for each time. `KILLS=40` makes it two hundred deals. */
const LIVES = Number(process.env.KILLS ?? 8)
const AT_ONCE = 5

const terms = JSON.stringify({ MinerId: 't01000', Price: '0.0001', DurationEpochs: 518_400 })

function send(server: Dealgate, method: string, path: string, more: { body?: string | Buffer; token?: string } = {}) {
  return signedRequest(
    server.endpoint,
    { accessKeyId: server.accessKey, secretAccessKey: server.secretKey },
    {
      method,
      path: `/photos${path}`,
      query: method === 'PUT' || method === 'HEAD' ? {} : { 'x-deal': '', format: 'json' },
      headers: { prefer: 'wait=120', ...(more.token && { 'x-amz-client-token': more.token }) },
      ...(more.body && { body: more.body }),
    },
  )
}

const ask = (server: Dealgate, key: string): Promise<Answer> =>
  send(server, 'POST', `/${key}`, { body: terms, token: `token-of-${key}` })

t.test('exactly one deal for a token, whenever the server dies', async (t) => {
  const server = await startDealgate(t)
  await signedRequest(
    server.endpoint,
    { accessKeyId: server.accessKey, secretAccessKey: server.secretKey },
    {
      method: 'PUT',
      path: '/photos',
    },
  )
  const content = bytes('content', MiB)
  const keys = Array.from({ length: LIVES * AT_ONCE }, (_, i) => `object-${i}`)
  for (const key of keys) t.equal((await send(server, 'PUT', `/${key}`, { body: content })).status, 200)

  const before = performance.now()
  await send(server, 'PUT', '/first', { body: content })
  await ask(server, 'first')
  // From before the request is there to after it was answered.
  const span = (performance.now() - before) * AT_ONCE
  for (let life = 0; life < LIVES; life++) {
    const ours = keys.slice(life * AT_ONCE, (life + 1) * AT_ONCE)
    const asked = ours.map((key) => ask(server, key).catch(() => undefined))
    await sleep(Math.random() * span)
    await server.kill9()
    await Promise.all(asked)
    await server.start()
    const answers = await Promise.all(ours.map((key) => ask(server, key)))
    const refused = answers.find(({ status }) => status !== 200)
    if (refused) throw new Error(`life ${life}: ${refused.status} ${refused.body}`)
  }
  for (const key of keys) {
    const { DealEntry } = JSON.parse((await send(server, 'GET', `/${key}`)).body)
    const { headers } = await send(server, 'HEAD', `/${key}`)
    t.equal(DealEntry.length, 1, key)
    t.match(headers, { 'x-amz-meta-deal-count': '1', 'x-amz-meta-deal-cid': DealEntry[0]?.Deal.DealCid })
  }
})

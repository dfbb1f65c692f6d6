import { randomBytes, randomInt } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { type Dealgate, startDealgate } from '../../support/server/dealgate.js'
import { send } from '../../support/sign/send.js'

/** What everybody runs is a sample; `npm run stress` asks for 200. */
const ROUNDS = Number(process.env.DEALGATE_STRESS_ROUNDS ?? 3)
t.setTimeout(900_000 + ROUNDS * 30_000)
/** Deals under way when it is killed. */
const AT_ONCE = 2
const BUCKET = 'killed'
const TERMS = {
  MinerId: 't01000',
  Price: '0.0000000005',
  DurationEpochs: 518400,
  VerifiedDeal: false,
  FastRetrieval: true,
}

interface Deal {
  readonly DealCid: string
}

async function json<T>(
  server: Dealgate,
  method: string,
  target: string,
  options: object = {},
): Promise<{ status: number; body: T }> {
  const answer = await send(server, { method, target, ...options })
  return { status: answer.status, body: JSON.parse(answer.body.toString()) as T }
}

function askForDeal(server: Dealgate, key: string, wait: number) {
  const body = Buffer.from(JSON.stringify(TERMS))
  return json<{ Deal?: Deal; Status?: string }>(server, 'POST', `/${BUCKET}/${key}?format=json&x-deal=`, {
    body,
    headers: { 'content-type': 'application/json', 'x-amz-client-token': `token-${key}`, prefer: `wait=${wait}` },
  })
}

t.test(`killed at ${ROUNDS} random moments during deals: each deal is made exactly once`, async (t) => {
  const server = await startDealgate(t)
  t.equal((await send(server, { method: 'PUT', target: `/${BUCKET}` })).status, 200)
  const began = Date.now()
  const made: string[] = []
  /** How long deals take that are left alone, ms: the moments of death are spread over it and a little more. */
  let usual = 0
  const somewhere = () => sleep(randomInt(1, Math.ceil(usual * 1.2) + 2))
  for (let round = 0; round < ROUNDS; round++) {
    const objects = Array.from({ length: AT_ONCE }, (_, i) => ({
      key: `object-${round}-${i}`,
      content: randomBytes(150_000),
    }))
    for (const { key, content } of objects)
      t.equal((await send(server, { method: 'PUT', target: `/${BUCKET}/${key}`, body: content })).status, 200)
    const start = performance.now()
    const first = Promise.allSettled(objects.map(({ key }) => askForDeal(server, key, 60)))
    if (round === 0) {
      await first
      usual = performance.now() - start
    } else await somewhere()
    await server.kill9()
    await first
    await server.start()
    // Sometimes it dies once more while it finds out what became of them.
    if (randomInt(4) === 0) {
      const again = Promise.allSettled(objects.map(({ key }) => askForDeal(server, key, 60)))
      await somewhere()
      await server.kill9()
      await again
      await server.start()
    }
    for (const { key, content } of objects) {
      const { status, body } = await askForDeal(server, key, 120)
      if (status !== 200 || !body.Deal) return t.fail(`round ${round} ended with ${status} ${JSON.stringify(body)}`)
      const history = await json<{ DealEntry: { Deal: Deal }[] }>(
        server,
        'GET',
        `/${BUCKET}/${key}?format=json&x-deal=`,
      )
      t.same(
        history.body.DealEntry.map(({ Deal }) => Deal.DealCid),
        [body.Deal.DealCid],
        `round ${round}: one deal of ${key}, the one that was answered`,
      )
      const back = await send(server, { method: 'GET', target: `/${BUCKET}/${key}` })
      t.ok(back.body.equals(content), 'and the object is as it was')
      made.push(body.Deal.DealCid)
    }
  }
  t.equal(new Set(made).size, ROUNDS * AT_ONCE, 'no two objects got the same deal')
  const inNetwork = readdirSync(join(server.data, 'services', 'network'), { recursive: true, encoding: 'utf8' })
  t.equal(inNetwork.filter((name) => name.endsWith('.car')).length, ROUNDS * AT_ONCE, 'and the provider holds no other')
  t.comment(
    `${ROUNDS} rounds in ${Math.round((Date.now() - began) / 1000)} s, ${AT_ONCE} deals take ${Math.round(usual)} ms`,
  )
})

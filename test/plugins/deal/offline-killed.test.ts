import { randomBytes } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parseAmount } from '../../../src/index.js'
import { type Dealgate, startDealgate } from '../../support/server/dealgate.js'
import { ask, completed, ManyDeaths, rows, today } from '../../support/server/many-deaths.js'
import { send } from '../../support/sign/send.js'
import { farFromMidnight } from '../../support/waiting.js'

/** The suite runs a sample; `npm run stress` runs more. */
const ROUNDS = Number(process.env.DEALGATE_STRESS_ROUNDS ?? 2)
t.setTimeout(900_000 + ROUNDS * 30_000)
/** Orders under way when the server is killed. */
const AT_ONCE = 2
const BUCKET = 'killed'
const TERMS = { MinerId: 't01000', MaxPrice: '0.000001', DurationEpochs: 518_400 }

interface Offline {
  readonly JobId: string
  readonly Task: { readonly TaskUuid: string }
}

function order(server: Dealgate, Prefix: string, wait: number) {
  return ask(server, 'POST', `/${BUCKET}?x-deal-offline=`, {
    json: { ...TERMS, Prefix },
    headers: { 'x-amz-client-token': `token-${Prefix}`, prefer: `wait=${wait}` },
  })
}

/** Attofil that count for today, as the refusal of an order beyond the cap states them. */
async function spent(server: Dealgate, token: string): Promise<bigint> {
  const { json } = await ask(server, 'POST', `/${BUCKET}?x-deal-offline=`, {
    json: { ...TERMS, MaxPrice: '1000000' },
    headers: { 'x-amz-client-token': token, prefer: 'wait=120' },
  })
  const [, amount = ''] = /(\d+(?:\.\d+)?)(?: fil)? are spent/.exec(json.Message ?? '') ?? []
  const spent = parseAmount(amount)
  if (spent === undefined) throw new Error(`no amount in ${JSON.stringify(json)}`)
  return spent
}

t.test(`killed at ${ROUNDS} random moments during offline deals: each is one task`, async (t) => {
  await farFromMidnight()
  const server = await startDealgate(t)
  t.equal((await send(server, { method: 'PUT', target: `/${BUCKET}` })).status, 200)
  const deaths = new ManyDeaths(server)
  const began = today()
  const tasks: string[] = []
  let ofOneRound = 0n
  for (let round = 0; round < ROUNDS; round++) {
    const prefixes = Array.from({ length: AT_ONCE }, (_, i) => `round-${round}-${i}/`)
    for (const prefix of prefixes)
      await send(server, { method: 'PUT', target: `/${BUCKET}/${prefix}object`, body: randomBytes(150_000) })
    await deaths.during(() => Promise.all(prefixes.map((prefix) => order(server, prefix, 60))))
    for (const prefix of prefixes) {
      const { JobId, Task } = await completed<Offline>(prefix, () => order(server, prefix, 120))
      t.match(await ask(server, 'GET', `/-/jobs/v1/${JobId}`), { json: { Status: 'Complete' } })
      const { headers } = await send(server, { method: 'HEAD', target: `/${BUCKET}/${prefix}object` })
      t.equal(headers['x-amz-meta-task-uuid'], Task.TaskUuid, `the object of ${prefix} names the task`)
      tasks.push(Task.TaskUuid)
    }
    const offline = await ask(server, 'GET', `/${BUCKET}?x-deal-offline=`)
    const listed = offline.json.OfflineDeal.map(({ Task }: Offline) => Task.TaskUuid)
    t.same(listed.sort(), [...tasks].sort(), `round ${round}: the tasks of the bucket are those that were answered`)
    const newest = (await ask(server, 'GET', `/${BUCKET}?max-items=${AT_ONCE}&x-task=`)).json.Tasks
    const ofRound = newest.map(({ TaskUuid }: { TaskUuid: string }) => TaskUuid)
    t.same(ofRound.sort(), tasks.slice(-AT_ONCE).sort(), 'as in the list of the plugin task')
    const money = await spent(server, `spent-${round}`)
    if (round === 0) ofOneRound = money
    if (today() === began) t.equal(money, ofOneRound * BigInt(round + 1), 'the money counts once')
  }
  t.ok(ofOneRound > 0n)
  await server.stop()

  const count = ROUNDS * AT_ONCE
  t.equal(new Set(tasks).size, count, 'no two orders have the same task')
  t.equal(rows(server, 'platform/platform.db', 'tasks'), count, 'the platform has no others, and no draft')
  t.equal(rows(server, 'gateway/index.db', 'offline_tasks'), count)
  t.equal(rows(server, 'gateway/index.db', "offline_tasks WHERE state IN ('packing', 'packed')"), 0)
  t.equal(rows(server, 'gateway/index.db', 'deals'), count, 'one deal for each CAR')
  t.equal(rows(server, 'network/network.db', 'deals'), count, 'each is proposed once')
  const files = readdirSync(join(server.data, 'services', 'gateway', 'offline'), {
    recursive: true,
    encoding: 'utf8',
  }).filter((name) => name.includes('/'))
  t.equal(files.length, rows(server, 'gateway/index.db', 'offline_cars WHERE present = 1'), 'no other CAR is left')
})

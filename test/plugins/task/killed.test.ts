import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { temporaryFolder } from '../../support/content/folders.js'
import { type Dealgate, startDealgate } from '../../support/server/dealgate.js'
import { ask, completed, ManyDeaths, rows, spentOf, today } from '../../support/server/many-deaths.js'
import { send } from '../../support/sign/send.js'
import { farFromMidnight } from '../../support/waiting.js'

/** The suite runs a sample; `npm run stress` runs more. */
const ROUNDS = Number(process.env.DEALGATE_STRESS_ROUNDS ?? 1)
t.setTimeout(900_000 + ROUNDS * 60_000)
/** Orders under way when the server is killed. */
const AT_ONCE = 2
const BUCKET = 'killed'
const MANIFEST = 'deals.csv'
/** No provider gets the task: nothing is fetched. */
const TERMS = {
  ...{ IsPublic: true, BidMode: 2, MaxPrice: '0.000001', Duration: 518_400 },
  ...{ ManifestBucket: BUCKET, ManifestKey: MANIFEST },
}
const CSV = `file_source_url,file_size\n${Array.from({ length: 2000 }, (_, i) => `http://127.0.0.1:1/${i}.car,2000\n`).join('')}`

interface Made {
  readonly JobId: string
  readonly TaskUuid: string
}

function order(server: Dealgate, TaskName: string, wait: number, MaxPrice = TERMS.MaxPrice) {
  return ask(server, 'POST', '/-/task/v1/tasks', {
    json: { ...TERMS, TaskName, MaxPrice },
    headers: { 'x-amz-client-token': `token-${TaskName}`, prefer: `wait=${wait}` },
  })
}

/** Attofil that count for today, as the refusal of an order beyond the cap states them. */
async function spent(server: Dealgate, name: string): Promise<bigint> {
  const { json } = await order(server, name, 120, '1000000')
  return spentOf(json)
}

t.test(`killed at ${ROUNDS} random moments during tasks: each is created once`, async (t) => {
  await farFromMidnight()
  const config = join(temporaryFolder(t), 'dealgate.json')
  // A task that the platform does not have when the server is back is created again soon.
  writeFileSync(config, JSON.stringify({ plugins: ['deal', { use: 'task', options: { reconcileAfterSeconds: 1 } }] }))
  const server = await startDealgate(t, { args: ['--config', config] })
  t.equal((await send(server, { method: 'PUT', target: `/${BUCKET}` })).status, 200)
  t.equal((await send(server, { method: 'PUT', target: `/${BUCKET}/${MANIFEST}`, body: Buffer.from(CSV) })).status, 200)
  const session = await ask(server, 'POST', '/-/task/v1/session', {
    json: { Email: 'owner@localhost', Password: server.platformPassword, Store: true },
  })
  t.match(session, { status: 200, json: { Stored: true } })
  const deaths = new ManyDeaths(server)
  const began = today()
  const tasks: string[] = []
  let ofOneRound = 0n
  for (let round = 0; round < ROUNDS; round++) {
    const names = Array.from({ length: AT_ONCE }, (_, i) => `task-${round}-${i}`)
    await deaths.during(() => Promise.all(names.map((name) => order(server, name, 60))))
    for (const name of names) {
      const { JobId, TaskUuid } = await completed<Made>(name, () => order(server, name, 120))
      t.match(await ask(server, 'GET', `/-/jobs/v1/${JobId}`), { json: { Status: 'Complete' } })
      t.match(await ask(server, 'GET', `/-/task/v1/tasks/${TaskUuid}`), {
        json: { Task: { TaskName: name }, TotalDealCount: 2000, Source: { Bucket: BUCKET, JobId } },
      })
      tasks.push(TaskUuid)
    }
    const newest = (await ask(server, 'GET', `/${BUCKET}?max-items=${AT_ONCE}&x-task=`)).json.Tasks
    const ofRound = newest.map(({ TaskUuid }: Made) => TaskUuid)
    t.same(ofRound.sort(), tasks.slice(-AT_ONCE).sort(), `round ${round}: the bucket lists those that were answered`)
    t.match(await ask(server, 'GET', '/-/task/v1/my-tasks?max-items=1'), { json: { TotalItems: tasks.length } })
    const money = await spent(server, `spent-${round}`)
    if (round === 0) ofOneRound = money
    if (today() === began) t.equal(money, ofOneRound * BigInt(round + 1), 'the money counts once')
  }
  t.ok(ofOneRound > 0n)
  await server.stop()
  t.equal(new Set(tasks).size, ROUNDS * AT_ONCE, 'no two orders have the same task')
  t.equal(rows(server, 'platform/platform.db', 'tasks'), tasks.length, 'the platform has no others, and no draft')
})

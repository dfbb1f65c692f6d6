import { randomBytes } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { createLogger } from '../../../common/log.js'
import { ScheduleRecords } from '../../../plugins/deal/periodic/schedule-records.js'
import { openState } from '../../../src/state/open-state.js'
import { type Dealgate, startDealgate } from '../../support/server/dealgate.js'
import { ask, completed, ManyDeaths, rows, spentOf, today } from '../../support/server/many-deaths.js'
import { send } from '../../support/sign/send.js'
import { farFromMidnight, until } from '../../support/waiting.js'

/** The suite runs a sample; `npm run stress` runs more. */
const ROUNDS = Number(process.env.DEALGATE_STRESS_ROUNDS ?? 1)

t.setTimeout(1_800_000 + ROUNDS * 90_000)

/** Deals or orders under way when the server is killed. */
const AT_ONCE = 2
const BUCKET = 'killed'
const TERMS = { MinerId: 't01000', Price: '0.0000000005', DurationEpochs: 518_400 }

interface Deal {
  readonly DealCid: string
}

function askForDeal(server: Dealgate, key: string, wait: number) {
  return ask(server, 'POST', `/${BUCKET}/${key}?x-deal=`, {
    json: TERMS,
    headers: { 'x-amz-client-token': `token-${key}`, prefer: `wait=${wait}` },
  })
}

t.test(`killed at ${ROUNDS} random moments during deals: each deal is made exactly once`, async (t) => {
  const server = await startDealgate(t)
  t.equal((await send(server, { method: 'PUT', target: `/${BUCKET}` })).status, 200)
  const deaths = new ManyDeaths(server)
  const made: string[] = []
  for (let round = 0; round < ROUNDS; round++) {
    const objects = Array.from({ length: AT_ONCE }, (_, i) => ({
      key: `object-${round}-${i}`,
      content: randomBytes(150_000),
    }))
    for (const { key, content } of objects)
      t.equal((await send(server, { method: 'PUT', target: `/${BUCKET}/${key}`, body: content })).status, 200)
    await deaths.during(() => Promise.all(objects.map(({ key }) => askForDeal(server, key, 60))))
    for (const { key, content } of objects) {
      const { Deal } = await completed<{ Deal: Deal }>(key, () => askForDeal(server, key, 120))
      const { json } = await ask(server, 'GET', `/${BUCKET}/${key}?x-deal=`)
      t.same(
        json.DealEntry.map((entry: { Deal: Deal }) => entry.Deal.DealCid),
        [Deal.DealCid],
        `round ${round}: one deal of ${key}, the one that was answered`,
      )
      const back = await send(server, { method: 'GET', target: `/${BUCKET}/${key}` })
      t.ok(back.body.equals(content), 'and the object is as it was')
      made.push(Deal.DealCid)
    }
  }
  t.equal(new Set(made).size, ROUNDS * AT_ONCE, 'no two objects got the same deal')
  const inNetwork = readdirSync(join(server.data, 'services', 'network'), { recursive: true, encoding: 'utf8' })
  t.equal(inNetwork.filter((name) => name.endsWith('.car')).length, ROUNDS * AT_ONCE, 'and the provider holds no other')
})

/** Objects of a backup: more than are backed up at once. */
const OBJECTS = 6
const OPERATION = 'deal:RunSchedule'

/** Due once a year: at no time while the test runs. */
function scheduleOf(round: number) {
  return { Id: `round-${round}`, Cron: '0 0 1 1 *', Filter: { Prefix: `round-${round}/` } }
}

type ScheduleJob = { readonly Status: string; readonly Result: { readonly Schedule: string } | null }

async function jobsOf(server: Dealgate): Promise<ScheduleJob[]> {
  const { json } = await ask(server, 'GET', '/-/jobs/v1?max-items=1000')
  return json.Jobs.filter(({ Operation }: { Operation: string }) => Operation === OPERATION)
}

/** Resolves with the result of the backup of a round. */
function complete(server: Dealgate, round: number) {
  return until(`the backup of round ${round} is complete`, async () => {
    const job = (await jobsOf(server)).find(({ Result }) => Result?.Schedule === scheduleOf(round).Id)
    return job?.Status === 'Complete' && job.Result
  })
}

/** Lets the schedule be due as the server starts: as if it had been there for years. */
async function makeDue(server: Dealgate, round: number): Promise<void> {
  const state = await openState({ data: server.data, log: createLogger({ level: 'silent' }) })
  try {
    const records = new ScheduleRecords(state)
    for await (const [key, { id }] of records.all()) if (id === scheduleOf(round).Id) await records.delete(key)
    await records.observe(BUCKET, scheduleOf(round), 0)
  } finally {
    await state.close()
  }
}

t.test(`killed at ${ROUNDS} random moments during scheduled backups: each deal is made once`, async (t) => {
  const server = await startDealgate(t)
  t.equal((await send(server, { method: 'PUT', target: `/${BUCKET}` })).status, 200)
  const deaths = new ManyDeaths(server)
  const Schedules = []
  for (let round = 0; round < ROUNDS; round++) {
    const keys = Array.from({ length: OBJECTS }, (_, i) => `round-${round}/object-${i}`)
    for (const key of keys)
      await send(server, { method: 'PUT', target: `/${BUCKET}/${key}`, body: randomBytes(100_000) })
    Schedules.push(scheduleOf(round))
    const configured = await ask(server, 'POST', `/${BUCKET}?x-deal-config=`, { json: { Terms: [TERMS], Schedules } })
    t.equal(configured.status, 200, JSON.stringify(configured.json))
    await server.stop()
    await makeDue(server, round)
    await server.start()
    await deaths.during(() => complete(server, round))
    t.match(await complete(server, round), { Made: OBJECTS, Gone: 0, Failed: 0 })
    t.equal((await jobsOf(server)).length, round + 1, 'one job for each time that was due')
    for (const key of keys) {
      const { json } = await ask(server, 'GET', `/${BUCKET}/${key}?x-deal=`)
      t.equal(json.DealEntry.length, 1, `one deal of ${key}`)
    }
  }
  await server.stop()
  t.equal(rows(server, 'gateway/index.db', 'deals'), ROUNDS * OBJECTS)
  t.equal(rows(server, 'network/network.db', 'deals'), ROUNDS * OBJECTS, 'the network has no others')
})

const OFFLINE_TERMS = { MinerId: 't01000', MaxPrice: '0.000001', DurationEpochs: 518_400 }

interface Offline {
  readonly JobId: string
  readonly Task: { readonly TaskUuid: string }
}

function order(server: Dealgate, Prefix: string, wait: number) {
  return ask(server, 'POST', `/${BUCKET}?x-deal-offline=`, {
    json: { ...OFFLINE_TERMS, Prefix },
    headers: { 'x-amz-client-token': `token-${Prefix}`, prefer: `wait=${wait}` },
  })
}

/** Attofil that count for today, as the refusal of an order beyond the cap states them. */
async function spent(server: Dealgate, token: string): Promise<bigint> {
  const { json } = await ask(server, 'POST', `/${BUCKET}?x-deal-offline=`, {
    json: { ...OFFLINE_TERMS, MaxPrice: '1000000' },
    headers: { 'x-amz-client-token': token, prefer: 'wait=120' },
  })
  return spentOf(json)
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

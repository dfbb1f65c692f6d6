import { randomBytes } from 'node:crypto'
import t from 'tap'
import { ScheduleRecords } from '../../../plugins/deal/periodic/schedule-records.js'
import { createLogger } from '../../../src/common/log.js'
import { openState } from '../../../src/state/open-state.js'
import { type Dealgate, startDealgate } from '../../support/server/dealgate.js'
import { ask, ManyDeaths, rows } from '../../support/server/many-deaths.js'
import { send } from '../../support/sign/send.js'
import { until } from '../../support/waiting.js'

/** The suite runs a sample; `npm run stress` runs more. */
const ROUNDS = Number(process.env.DEALGATE_STRESS_ROUNDS ?? 2)
t.setTimeout(900_000 + ROUNDS * 30_000)
/** Objects of a backup: more than are backed up at once. */
const OBJECTS = 6
const BUCKET = 'killed'
const TERMS = { MinerId: 't01000', Price: '0.0000000005', DurationEpochs: 518_400 }
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

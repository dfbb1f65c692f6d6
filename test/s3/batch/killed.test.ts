import { Agent } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import pMap from 'p-map'
import t from 'tap'
import { sdkFor } from '../../support/programs/sdk.js'
import { startDealgate } from '../../support/server/dealgate.js'
import { send } from '../../support/sign/send.js'
import { batch, reaches, reportOf } from './scene.js'

/** Deaths: `npm run stress` has ten, while 100,000 objects are deleted. */
const KILLS = Number(process.env.DEALGATE_STRESS_ROUNDS ?? 2)
const ROWS = KILLS > 2 ? KILLS * 10_000 : 600

t.test(`a job over ${ROWS} objects does each task once, though its server dies ${KILLS} times`, async (t) => {
  const server = await startDealgate(t, { args: ['--batch-rate=100000'] })
  const s3 = sdkFor(t, server)
  for (const Bucket of ['things', 'admin']) await s3.createBucket({ Bucket })
  await s3.putBucketVersioning({ Bucket: 'things', VersioningConfiguration: { Status: 'Enabled' } })
  const keys = Array.from({ length: ROWS }, (_, at) => `k/${String(at).padStart(6, '0')}`)
  const agent = new Agent({ keepAlive: true })
  const body = Buffer.from('x')
  await pMap(keys, (key) => send(server, { method: 'PUT', target: `/things/${key}`, body }, agent), { concurrency: 16 })
  agent.destroy()
  // Of an object that is put in the second of an attempt, nothing tells which was first.
  await sleep(1000)
  const { json } = await batch(server, 'POST', '', {
    ...{ Operation: 'Delete', Filter: { Bucket: 'things', Prefixes: ['k/'] }, Report: { Bucket: 'admin' } },
  })
  for (let kill = 0; kill < KILLS; kill++) {
    // Deaths are spread over the work, which takes longer on a slow machine.
    const from = (ROWS * kill) / (KILLS + 1)
    for (;;) {
      const { json: job } = await batch(server, 'GET', `/${json.JobId}`)
      if (job.NumberOfTasksSucceeded >= from && job.Status !== 'New') break
      await sleep(20)
    }
    await server.kill9()
    await server.start()
  }
  const job = await reaches(server, json.JobId)
  t.match(job, { Status: 'Complete', TotalNumberOfTasks: ROWS, NumberOfTasksSucceeded: ROWS, NumberOfTasksFailed: 0 })
  // It has another port now.
  const again = sdkFor(t, server)
  const { manifest, lines } = await reportOf(again, job.Report)
  t.same(manifest.Summary, { TotalNumberOfTasks: ROWS, NumberOfTasksSucceeded: ROWS, NumberOfTasksFailed: 0 })
  t.same(
    lines.sort(),
    keys.map((key) => `things,${key},,succeeded,204,,`),
  )
  let markers = 0
  for (const Prefix of new Set(keys.map((key) => key.slice(0, -2))))
    markers += (await again.listObjectVersions({ Bucket: 'things', Prefix })).DeleteMarkers?.length ?? 0
  t.equal(markers, ROWS, 'no object was deleted twice')
})

import { Agent } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import pMap from 'p-map'
import t from 'tap'
import { Between } from '../../support/gateway/between.js'
import { startGateway } from '../../support/gateway/embedded.js'
import { batch, reaches, reportOf } from '../../support/plugins/batch-scene.js'
import { sdkFor } from '../../support/programs/sdk.js'
import { startDealgate } from '../../support/server/dealgate.js'
import { ask } from '../../support/server/many-deaths.js'
import { send } from '../../support/sign/send.js'
import { until } from '../../support/waiting.js'

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

for (const mode of ['full', 'legacy'] as const)
  for (const arrives of [true, false])
    t.test(`${mode}: copies that ${arrives ? 'are' : 'are not'} made when the server dies are made once`, async (t) => {
      const between = await Between.start(t, await startGateway(t, mode))
      const server = await startDealgate(t, { gateway: between })
      const s3 = () => sdkFor(t, server)
      const Bucket = 'things'
      await s3().createBucket({ Bucket })
      const versioned = mode === 'full'
      if (versioned) await s3().putBucketVersioning({ Bucket, VersioningConfiguration: { Status: 'Enabled' } })
      for (const Key of ['a/1', 'b/1', 'b/2']) await s3().putObject({ Bucket, Key, Body: 'x', Metadata: { is: 'old' } })
      // As the copies are, but for their metadata.
      await s3().putObject({ Bucket, Key: 'copy/b/1', Body: 'x' })
      // Of an object that is put in the second of an attempt, nothing tells which was first.
      await sleep(2000)
      const began = Date.now() - 1000

      const copies = new Promise<void>((resolve) => {
        let left = 3
        between.fate = ({ method }) => {
          if (method !== 'PUT') return 'pass'
          if (--left === 0) setImmediate(resolve)
          return arrives ? 'silence-after' : new Promise(() => {})
        }
      })
      const order = async (TargetPrefix: string, Prefixes: string[]) => {
        const Copy = { TargetBucket: Bucket, TargetPrefix, Metadata: { is: 'new' } }
        const { json } = await batch(server, 'POST', '', { Operation: 'Copy', Copy, Filter: { Bucket, Prefixes } })
        return json.JobId as string
      }
      const jobs = [await order('', ['a/']), await order('copy/', ['b/'])]
      await copies
      const young = async () => {
        const { Contents = [] } = await s3().listObjectsV2({ Bucket })
        return Contents.filter(({ LastModified = 0 }) => Number(LastModified) >= began).length
      }
      if (arrives) await until('the gateway has them', async () => (await young()) === 3)
      await server.kill9()
      between.fate = () => 'pass'
      await server.start()
      for (const id of jobs) {
        const { Status, Failures } = await reaches(server, id)
        t.same({ Status, Failures }, { Status: 'Complete', Failures: [] })
      }
      for (const Key of ['a/1', 'copy/b/1', 'copy/b/2'])
        t.match(await s3().headObject({ Bucket, Key }), { Metadata: { is: 'new' } })
      if (!versioned) return
      const { Versions = [] } = await s3().listObjectVersions({ Bucket })
      t.same(
        Versions.map(({ Key }) => Key),
        ['a/1', 'a/1', 'b/1', 'b/2', 'copy/b/1', 'copy/b/1', 'copy/b/2'],
      )
    })

t.test('a copy into a class pays for one deal, though the server dies before its task is recorded', async (t) => {
  const server = await startDealgate(t)
  const Bucket = 'things'
  await sdkFor(t, server).createBucket({ Bucket })
  const Terms = [{ MinerId: 't01000', Price: '0.0000000005', DurationEpochs: 518_400 }]
  t.equal((await ask(server, 'POST', `/${Bucket}?x-deal-config=`, { json: { Terms } })).status, 200)
  for (const Key of ['a', 'b']) await sdkFor(t, server).putObject({ Bucket, Key, Body: Key.repeat(150_000) })
  const Copy = { TargetBucket: Bucket, TargetPrefix: 'copy/', StorageClass: 'GLACIER' }
  // The second task waits for a second, and the outcome of the first is recorded with it.
  const order = { Operation: 'Copy', Copy, Filter: { Bucket, Prefixes: ['a', 'b'] }, RequestsPerSecond: 1 }
  const { json } = await batch(server, 'POST', '', order)
  const jobsOf = async (key: string) => {
    const { Jobs } = (await ask(server, 'GET', '/-/jobs/v1?plugin=deal')).json
    return Jobs.filter(({ Resource }: { readonly Resource: string }) => Resource === `/${Bucket}/copy/${key}`)
  }
  await until('the first copy is made', async () => {
    const { json } = await ask(server, 'GET', `/${Bucket}/copy/a?x-deal=`).catch(() => ({ json: {} }))
    return json.DealEntry !== undefined
  })
  await server.kill9()
  await server.start()
  t.match(await reaches(server, json.JobId), { Status: 'Complete', NumberOfTasksSucceeded: 2 })
  for (const key of ['a', 'b']) {
    const jobs = await jobsOf(key)
    t.match(jobs, [{ Operation: 'deal:CreateObjectDeal' }], `${key}: ${JSON.stringify(jobs)}`)
    t.equal(jobs.length, 1)
  }
})

import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import t from 'tap'
import { temporaryFolder } from '../support/content/folders.js'
import { startDealgate } from '../support/server/dealgate.js'
import { signedRequest } from '../support/sign/signed-request.js'
import { until } from '../support/waiting.js'
import { WebhookReceiver } from '../support/webhook-receiver.js'

// Work without a request, which one of the workers of `dealgate serve --workers` does.

const WORKERS = 2
const JOBS = 24

/** A plugin whose job notes that it has run, and where. */
const TALLY = `
import { appendFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { defineCall, definePlugin, z } from 'dealgate'

const source = 'README.md'
const run = defineCall({
  name: 'RunTally',
  source,
  summary: 'Starts a job.',
  access: 'owner',
  on: { method: 'POST', resource: 'object', subresource: 'x-tally' },
  result: z.object({}),
  job: 'tally:RunTally',
  spends: false,
  order: async ({ request: { bucket, key } }) => ({ resource: '/' + bucket + '/' + key, input: key }),
})

export default definePlugin({
  name: 'tally',
  summary: 'Notes its jobs.',
  create: () => ({
    operations: [run],
    jobs: [
      {
        name: 'tally:RunTally',
        concurrency: 4,
        async run(job) {
          appendFileSync(process.env.TALLY_RUNS, process.pid + ' ' + job.input + '\\n')
          await sleep(20)
          return {}
        },
      },
    ],
  }),
})
`

t.test('a job and a notification are for one of the workers', { timeout: 300_000 }, async (t) => {
  const folder = join(temporaryFolder(t), 'tally')
  mkdirSync(join(folder, 'node_modules'), { recursive: true })
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: 'tally', type: 'module' }))
  writeFileSync(join(folder, 'index.js'), TALLY)
  writeFileSync(join(folder, 'runs'), '')
  symlinkSync(resolve('.'), join(folder, 'node_modules', 'dealgate'))
  const receiver = await WebhookReceiver.start(t)
  const args = ['--workers', String(WORKERS), '--plugin', folder, '--webhook', `hook=${receiver.url}`]
  const server = await startDealgate(t, { args, env: { TALLY_RUNS: join(folder, 'runs') } })
  const keys = { accessKeyId: server.accessKey, secretAccessKey: server.secretKey }
  // Each request takes a connection of its own, so that the workers get them in turn.
  const send = (method: string, path: string, query: Record<string, string> = {}, body = '') =>
    signedRequest(server.endpoint, keys, { method, path, query, body, headers: { connection: 'close' } })

  const healths = await Promise.all(Array.from({ length: 8 }, () => send('GET', '/-/health')))
  const found = healths.map(({ body }) => JSON.parse(body) as { Pid: number; Worker: number })
  t.same([...new Set(found.map(({ Worker }) => Worker))].sort(), [1, 2], 'each worker tells its number')
  t.equal(new Set(found.map(({ Pid }) => Pid)).size, WORKERS, 'and its process')

  t.equal((await send('PUT', '/once')).status, 200)
  const rule = '<Id>all</Id><Queue>arn:dealgate:webhook:::hook</Queue><Event>s3:ObjectCreated:*</Event>'
  const configuration = `<NotificationConfiguration><QueueConfiguration>${rule}</QueueConfiguration></NotificationConfiguration>`
  const configured = await send('PUT', '/once', { notification: '' }, configuration)
  t.equal(configured.status, 200, configured.body)

  const keysOfJobs = Array.from({ length: JOBS }, (_, i) => `job-${String(i).padStart(2, '0')}`)
  await Promise.all(keysOfJobs.map((key) => send('PUT', `/once/${key}`, {}, key)))
  const started = await Promise.all(keysOfJobs.map((key) => send('POST', `/once/${key}`, { 'x-tally': '' })))
  // The answer comes when the job has ended.
  for (const { status, body } of started) t.equal(status, 200, body)
  await until('all events have arrived', () => receiver.events.length >= JOBS)
  // When the server has stopped, nothing more can run.
  await server.stop('SIGTERM')
  const runs = readFileSync(join(folder, 'runs'), 'utf8').trim().split('\n')
  t.same(runs.map((line) => line.split(' ')[1]).sort(), keysOfJobs, 'each job has run once')
  const pids = found.map(({ Pid }) => String(Pid))
  t.ok(
    runs.every((line) => pids.includes(line.split(' ')[0] ?? '')),
    'in workers',
  )
  t.same(
    receiver.events.sort(),
    keysOfJobs.map((key) => `ObjectCreated:Put ${key}`),
    'each event has arrived once',
  )
})

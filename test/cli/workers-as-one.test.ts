import { mkdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import t from 'tap'
import { temporaryFolder } from '../support/content/folders.js'
import { runCli } from '../support/server/cli.js'
import { startDealgate } from '../support/server/dealgate.js'
import { signedRequest } from '../support/sign/signed-request.js'
import { until } from '../support/waiting.js'
import { WebhookReceiver } from '../support/webhook-receiver.js'

// What the workers of `dealgate serve --workers` do as one server: log files, metrics, and work without a request.

const WORKERS = 2
const JOBS = 24

/** A plugin whose job notes that it has run, and where. */
const TALLY = `
import { appendFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { defineCall, definePlugin, z } from 'dealgate/plugin'

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

function linesOf(path: string): string[] {
  return readFileSync(path, { encoding: 'utf8', flag: 'a+' }).split('\n').slice(0, -1)
}

/** Value of the one series that begins like this. */
function seriesValue(text: string, series: string): number {
  const line = text.split('\n').find((line) => line.startsWith(series))
  return Number(line?.slice(line.lastIndexOf(' ') + 1))
}

const folder = join(temporaryFolder(t), 'tally')
mkdirSync(join(folder, 'node_modules'), { recursive: true })
writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: 'tally', type: 'module' }))
writeFileSync(join(folder, 'index.js'), TALLY)
writeFileSync(join(folder, 'runs'), '')
symlinkSync(resolve('.'), join(folder, 'node_modules', 'dealgate'))
const receiver = await WebhookReceiver.start(t)
const [accessLog, auditLog] = [join(folder, 'access.log'), join(folder, 'audit.log')]
const server = await startDealgate(t, {
  args: [
    ...['--workers', String(WORKERS), '--plugin', folder, '--webhook', `hook=${receiver.url}`, '--metrics-port', '0'],
    ...['--access-log-file', accessLog, '--access-log-format', 's3', '--audit-log', auditLog],
  ],
  env: { TALLY_RUNS: join(folder, 'runs') },
})
const keys = { accessKeyId: server.accessKey, secretAccessKey: server.secretKey }
// Each request takes a connection of its own, so that the workers get them in turn.
const send = (method: string, path: string, query: Record<string, string> = {}, body = '') =>
  signedRequest(server.endpoint, keys, { method, path, query, body, headers: { connection: 'close' } })

t.test('all workers append to the files, and open them again at SIGUSR2', async (t) => {
  t.equal((await send('PUT', '/audited')).status, 200)
  for (let n = 0; n < 8; n++) await send('HEAD', '/audited')
  await until('nine requests are logged', () => linesOf(accessLog).length === 9)
  for (const line of linesOf(accessLog))
    t.match(line, /^- audited \[.*\] 127\.0\.0\.1 \S+ [0-9A-F]{16} REST\.(PUT|HEAD)\.BUCKET - "/)
  t.same(
    linesOf(auditLog).map((line) => JSON.parse(line).action),
    ['CreateBucket'],
  )

  for (const file of [accessLog, auditLog]) renameSync(file, `${file}.1`)
  process.kill(server.pid, 'SIGUSR2')
  await until('both workers use the new files', async () => {
    const before = linesOf(accessLog).length
    for (let n = 0; n < 4; n++) await send('HEAD', '/audited')
    return linesOf(accessLog).length >= before + 4
  })
  t.equal((await send('DELETE', '/audited')).status, 204)
  t.match(linesOf(auditLog).at(-1), /"action":"DeleteBucket".*"outcome":"ok"/)
  t.equal(linesOf(`${auditLog}.1`).length, 1)
})

t.test('the metrics have a port of their own, and leave that of the endpoint', async (t) => {
  const read = async () => (await fetch(server.metrics)).text()
  t.equal(seriesValue(await read(), 'dealgate_requests_total{operation="CreateBucket"'), 1)
  t.ok(seriesValue(await read(), 'process_cpu_seconds_total') > 0)
  t.not((await send('GET', '/-/metrics')).status, 200)
  t.equal((await fetch(new URL('/other', server.metrics))).status, 404)
  t.equal((await fetch(server.metrics, { method: 'POST' })).status, 405)
  const taken = new URL(server.metrics).port
  const { code, stderr } = await runCli(['serve', '--port', '0', '--gateway-port', '0', '--metrics-port', taken])
  t.equal(code, 1)
  t.match(stderr, /in use by another process\. Choose another port with --metrics-port/)
})

t.test('a job and a notification are for one of the workers', { timeout: 300_000 }, async (t) => {
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

import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { get } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { emptyDatabase } from '../services/engine.js'
import { temporaryFolder } from '../support/content/folders.js'
import { startDealgate } from '../support/server/dealgate.js'
import { lastingPort } from '../support/server/ports.js'
import { type Answer, send } from '../support/sign/send.js'
import { until } from '../support/waiting.js'

// Access logs, websites and quotas of buckets with several workers. With DEALGATE_ENGINE=postgres, their records are in
// PostgreSQL.

const REQUESTS = 40
const port = await lastingPort()
const [database, state] = [await emptyDatabase(), await emptyDatabase()]
const data = temporaryFolder(t)
const server = await startDealgate(t, {
  data,
  args: [
    ...['--workers', '2', '--website-port', String(port), '--bucket-log-interval-seconds', '1'],
    ...(database === undefined || state === undefined ? [] : ['--database', database, '--state', state]),
  ],
})

async function ask(method: string, target: string, body?: string): Promise<Answer> {
  return send(server, { method, target, ...(body !== undefined && { body: Buffer.from(body) }) })
}

async function put(target: string, body?: string): Promise<void> {
  const { status, body: answer } = await ask('PUT', target, body)
  if (status >= 300) throw new Error(`${target}: ${status} ${answer}`)
}

/** Over a connection of its own, which any worker may accept. */
async function visit(path: string): Promise<{ status: number | undefined; page: string }> {
  const headers = { host: `pages.localhost:${port}` }
  const [answer] = await once(get({ host: '127.0.0.1', port, path, agent: false, headers }), 'response')
  return { status: answer.statusCode, page: await text(answer) }
}

/** The operations of the lines that have arrived in the bucket. */
async function logged(): Promise<string[]> {
  const listed = await ask('GET', '/logs?list-type=2')
  const keys = [...String(listed.body).matchAll(/<Key>([^<]*)</g)].map(([, key]) => key)
  const logs = await Promise.all(keys.map(async (key) => String((await ask('GET', `/logs/${key}`)).body)))
  return logs.flatMap((log) => log.split('\n').flatMap((line) => /\b(?:REST|WEBSITE)\.[A-Z_.]+/.exec(line)?.[0] ?? []))
}

for (const bucket of ['pages', 'logs']) await put(`/${bucket}`)
await put('/pages/index.html', '<h1>Hello</h1>')
const statement = { Effect: 'Allow', Principal: '*', Action: 's3:GetObject', Resource: 'arn:aws:s3:::pages/*' }
await put('/pages?policy', JSON.stringify({ Version: '2012-10-17', Statement: statement }))
await put(
  '/pages?website',
  '<WebsiteConfiguration><IndexDocument><Suffix>index.html</Suffix></IndexDocument></WebsiteConfiguration>',
)
await put(
  '/pages?logging',
  '<BucketLoggingStatus><LoggingEnabled><TargetBucket>logs</TargetBucket><TargetPrefix>a/</TargetPrefix></LoggingEnabled></BucketLoggingStatus>',
)

t.test('each worker serves websites and logs what it has served', async (t) => {
  const visits = await Promise.all(Array.from({ length: REQUESTS }, () => visit('/')))
  for (const seen of visits) t.same(seen, { status: 200, page: '<h1>Hello</h1>' })
  const reads = await Promise.all(Array.from({ length: REQUESTS }, () => ask('GET', '/pages/index.html')))
  t.notOk(reads.some(({ status }) => status !== 200))
  const counted = async (name: string) => (await logged()).filter((operation) => operation === name).length
  for (const name of ['WEBSITE.GET.OBJECT', 'REST.GET.OBJECT']) {
    await until('all lines have arrived', async () => (await counted(name)) >= REQUESTS)
    t.equal(await counted(name), REQUESTS, `${name}: once each`)
  }
  t.equal(readdirSync(join(data, 'access-logs')).length, 2, 'a folder for each')
})

t.test('the quota of a bucket holds for writes to all workers', async (t) => {
  await put('/bounded')
  t.equal((await ask('POST', '/bounded?x-quota=', '{"Bytes":500}')).status, 200)
  const writes = await Promise.all(
    Array.from({ length: REQUESTS }, (_, n) => ask('PUT', `/bounded/${n % 30}`, 'x'.repeat(100))),
  )
  const statuses = writes.map(({ status }) => status)
  t.same([...new Set(statuses)].sort(), [200, 403])
  const listed = String((await ask('GET', '/bounded')).body)
  t.equal(listed.split('<Key>').length - 1, 5)
  t.match(
    String((await ask('GET', '/bounded?x-quota=')).body),
    '<Stored><Bytes>500</Bytes><Objects>5</Objects></Stored>',
  )
  await server.kill9()
  await server.start()
  t.match(String((await ask('GET', '/bounded?x-quota=')).body), '<Quota><Bytes>500</Bytes></Quota><Stored><Bytes>500<')
})

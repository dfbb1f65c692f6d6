import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { Authority } from '../support/content/certificates.js'
import { temporaryFolder } from '../support/content/folders.js'
import { type Dealgate, startDealgate } from '../support/server/dealgate.js'
import { answerTo, open, type Sending, send, sign, UNSIGNED_PAYLOAD } from '../support/sign/send.js'
import { until } from '../support/waiting.js'
import { WebhookReceiver } from '../support/webhook-receiver.js'

/** A server with a config file that the test changes. */
async function start(t: Test, first: object, args: readonly string[] = []) {
  const folder = temporaryFolder(t)
  const file = join(folder, 'dealgate.json')
  const configure = (content: object) => writeFileSync(file, JSON.stringify(content))
  configure(first)
  const server = await startDealgate(t, { args: ['--config', file, ...args] })
  const as = (accessKey: string, secretKey: string) => ({
    endpoint: server.endpoint,
    region: server.region,
    accessKey,
    secretKey,
  })
  const owner = as(server.accessKey, server.secretKey)
  const request = (sending: Sending, who = owner) => send(who, sending)
  const reload = async (who = owner) => {
    const { status, body } = await send(who, { method: 'POST', target: '/-/reload?format=json' })
    const document = JSON.parse(String(body))
    return status === 200 ? document : { status, code: document.Code }
  }
  return { folder, file, configure, server, as, owner, request, reload }
}

function logged(server: Dealgate, msg: string): Record<string, unknown>[] {
  const lines = server.log.split('\n').filter((line) => line.startsWith('{'))
  return lines.map((line) => JSON.parse(line)).filter((line) => line.msg === msg)
}

/** Sends a signal to the server, and waits for the next line with its outcome. */
async function hangup(server: Dealgate, msg: string): Promise<Record<string, unknown>> {
  // The line of a call may come after its answer.
  const lines = () => logged(server, msg).filter(({ cause }) => cause !== 'POST /-/reload')
  const { length } = lines()
  process.kill(server.pid, 'SIGHUP')
  await until(`the log has "${msg}"`, () => lines().length > length)
  return lines().at(-1) ?? {}
}

const DONE = 'reloaded the configuration'
const REFUSED = 'could not reload the configuration: nothing has changed'

t.test('options in the config file', async (t) => {
  const { folder, configure, server, as, owner, request, reload } = await start(t, { logLevel: 'warn' })
  t.equal((await request({ method: 'PUT', target: '/bucket' })).status, 200)
  t.same(await reload(), { Changed: [], NeedRestart: [] })

  const target = '/bucket/slow'
  const { headers } = sign(owner, { method: 'PUT', target, payloadHash: UNSIGNED_PAYLOAD })
  const put = open(owner, 'PUT', target, { ...headers, 'content-length': '2' })
  const answer = answerTo(put)
  put.write('a')

  const credentials = join(folder, 'others.json')
  const other = { accessKeyId: 'other-key', secretAccessKey: 'other-secret' }
  const few = { ...other, accessKeyId: 'few-key', rights: [{ bucket: '*', access: 'read' }] }
  const operator = { ...few, accessKeyId: 'operator-key', actions: ['server:Reload'] }
  writeFileSync(credentials, JSON.stringify([other, few, operator]), { mode: 0o600 })
  const next = {
    logLevel: 'info',
    credentialsFile: credentials,
    requestRatePerKey: '1000/1000',
    webhook: [`hook=${(await WebhookReceiver.start(t)).url}`],
    region: 'eu-west-1',
  }
  configure(next)
  const done = await hangup(server, 'these options have changed: restart the server to use them').then(() =>
    logged(server, DONE).at(-1),
  )
  t.match(done, {
    cause: 'SIGHUP',
    changed: ['--credentials-file', '--webhook', '--request-rate-per-key', '--log-level'],
    needRestart: ['--region'],
  })
  t.same(await reload(), { Changed: [], NeedRestart: ['--region'] }, 'what needs a restart is named again')
  t.equal((await request({ method: 'GET', target: '/bucket' }, as('other-key', 'other-secret'))).status, 200)
  const rule = '<Topic>arn:dealgate:webhook:::hook</Topic><Event>s3:ObjectCreated:*</Event>'
  const body = Buffer.from(
    `<NotificationConfiguration><TopicConfiguration>${rule}</TopicConfiguration></NotificationConfiguration>`,
  )
  t.equal((await request({ method: 'PUT', target: '/bucket?notification=', body })).status, 200, 'the webhook is known')

  t.match(await reload(as('few-key', 'other-secret')), { status: 403, code: 'AccessDenied' })
  t.match(await reload(as('operator-key', 'other-secret')), { Changed: [] })

  put.end('b')
  t.equal((await answer).status, 200, 'a request in progress goes on')
  t.notMatch(server.log, 'other-secret')

  await t.test('all or nothing', async (t) => {
    configure({ ...next, logLevel: 'debug', requestRatePerKey: 'fast' })
    t.match(await hangup(server, REFUSED), { reason: /requestRatePerKey in .* must be/ })
    t.match(await reload(), { status: 400, code: 'InvalidRequest' })
    configure({ ...next, logLevel: 'debug', credentialsFile: join(folder, 'absent.json') })
    t.match(await hangup(server, REFUSED), { reason: /credentials file/ })
    t.equal((await request({ method: 'GET', target: '/bucket' }, as('other-key', 'other-secret'))).status, 200)
    configure(next)
    t.same(await reload(), { Changed: [], NeedRestart: ['--region'] })
  })

  await t.test('the key pair of the owner', async (t) => {
    configure({ ...next, accessKey: 'new-owner', secretKey: 'new-owner-secret' })
    t.match(await reload(), { Changed: ['--access-key', '--secret-key'] })
    t.match(await request({ method: 'GET', target: '/' }), { status: 403, code: 'InvalidAccessKeyId' })
    t.equal((await request({ method: 'GET', target: '/' }, as('new-owner', 'new-owner-secret'))).status, 200)
    t.notMatch(server.log, 'new-owner-secret')
  })
})

t.test('bounds, hosts and plugins', async (t) => {
  const { configure, request, reload } = await start(t, { plugins: ['deal'] }, ['--workers', '2'])
  const next = { plugins: [{ use: 'deal', options: { statusIntervalSeconds: 60 } }], domain: ['s3.test'] }
  configure({ ...next, maxDocumentBytes: 2048 })
  t.same(await reload(), { Changed: ['--domain', '--max-document-bytes'], NeedRestart: ['--plugin'] })
  t.equal((await request({ method: 'PUT', target: '/bucket' })).status, 200)
  const body = Buffer.from(`<Tagging><TagSet></TagSet>${' '.repeat(2048)}</Tagging>`)
  const tagging = { method: 'PUT', target: '/bucket?tagging=' }
  t.equal((await request({ ...tagging, body })).status, 400, 'a document beyond the new bound')
  const { status } = await request({ method: 'PUT', target: '/key', headers: { host: 'bucket.s3.test' } })
  t.equal(status, 200, 'a bucket as host')
  configure({ ...next, plugins: ['deal', 'task'], maxDocumentBytes: 2048 })
  t.same(await reload(), { Changed: [], NeedRestart: ['--plugin'] }, 'another plugin')
})

t.test('certificates', async (t) => {
  const authority = new Authority(temporaryFolder(t))
  const one = authority.issue('one', 'IP:127.0.0.1')
  const two = authority.issue('two', 'IP:127.0.0.1')
  const { configure, server } = await start(t, { tlsCert: [one.cert], tlsKey: [one.key] })
  configure({ tlsCert: [two.cert], tlsKey: [one.key] })
  t.match(await hangup(server, REFUSED), { reason: /is not the private key/ })
  configure({ tlsCert: [two.cert], tlsKey: [two.key] })
  t.match(await hangup(server, DONE), { changed: ['--tls-cert', '--tls-key'] })
  configure({})
  t.match(await hangup(server, DONE), { changed: [], needRestart: ['--tls-cert', '--tls-key'] })
})

t.test('workers change together', async (t) => {
  const first = { accessKey: 'first-key', secretKey: 'first-secret' }
  const { folder, configure, server, as, request, reload } = await start(t, first, ['--workers', '2'])
  const old = as('first-key', 'first-secret')
  const many = (who: typeof old) =>
    Promise.all(Array.from({ length: 8 }, () => request({ method: 'GET', target: '/' }, who)))
  const bad = join(folder, 'bad.json')
  writeFileSync(bad, '[{"accessKeyId": "x"}]', { mode: 0o600 })
  configure({ accessKey: 'second-key', secretKey: 'second-secret', credentialsFile: bad })
  t.match(await reload(old), { status: 400, code: 'InvalidRequest' })
  for (const { status } of await many(old)) t.equal(status, 200)

  configure({ accessKey: 'second-key', secretKey: 'second-secret', region: 'eu-west-1' })
  t.match(await reload(old), { Changed: ['--access-key', '--secret-key'], NeedRestart: ['--region'] })
  for (const { status } of await many(old)) t.equal(status, 403)
  const next = as('second-key', 'second-secret')
  for (const { status } of await many(next)) t.equal(status, 200)

  configure({ accessKey: 'third-key', secretKey: 'third-secret' })
  const [worker] = logged(server, 'a worker is ready')
  process.kill(Number(worker?.pid), 'SIGKILL')
  await until('another worker is ready', () => logged(server, 'a worker is ready').length === 3)
  for (const { status } of await many(next)) t.equal(status, 200, 'a new worker has the configuration in use')
  t.match(await hangup(server, DONE), { changed: ['--access-key', '--secret-key'] })
  for (const { status } of await many(as('third-key', 'third-secret'))) t.equal(status, 200)

  const third = as('third-key', 'third-secret')
  configure({ accessKey: 'third-key', secretKey: 'third-secret', requestRatePerKey: '0.001/40' })
  t.match(await hangup(server, DONE), { changed: ['--request-rate-per-key'] })
  let accepted = 0
  while ((await request({ method: 'GET', target: '/' }, third)).status === 200 && accepted < 80) {
    accepted++
    // Longer than what a worker takes to tell the others of its requests.
    await sleep(60)
  }
  t.ok(accepted <= 52, `${accepted} requests: the workers count together, each reports five requests at a time`)
})

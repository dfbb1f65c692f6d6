import { chmodSync, existsSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { Config } from '../../cli/config/config.js'
import { withoutSecrets } from '../../cli/doctor/doctor.js'
import { startServices } from '../../services/index.js'
import { dataFolder, temporaryFolder } from '../support/content/folders.js'
import { runCli } from '../support/server/cli.js'
import { startDealgate } from '../support/server/dealgate.js'
import { listen } from '../support/server/listen.js'

const ACCOUNT = { accessKey: 'access', secretKey: 'secret-key' }

async function startGateway(t: Test): Promise<string> {
  const gateway = { host: '127.0.0.1', port: 0, brand: { path: 'minio', header: 'amz' }, ...ACCOUNT }
  const services = await startServices({ data: join(t.testdir({}), 'services'), gateway })
  t.teardown(() => services.stop())
  return services.gateway.url
}

/** Answers as MinIO does where its console is off: as an S3 server to which `minio` is a bucket. */
async function startS3(t: Test): Promise<string> {
  const server = createServer((request, response) => {
    request.resume()
    response.writeHead(405, { 'content-type': 'application/xml', 'x-amz-request-id': '1' })
    response.end('<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>MethodNotAllowed</Code></Error>')
  })
  return listen(server, t)
}

t.test('doctor names the likely mistake in the address of a gateway', async (t) => {
  const url = await startGateway(t)
  const s3 = await startS3(t)
  const brand = ['--brand-path', 'minio', '--brand-header', 'amz']
  const keys = ['--gateway-access-key', ACCOUNT.accessKey, '--gateway-secret-key', ACCOUNT.secretKey]
  const at = ['--data', join(t.testdirName, 'proxy'), '--port', '0']
  const doctor = (address: string, ...more: string[]) =>
    runCli(['doctor', ...at, '--gateway-url', address, ...keys, ...more])
  const right = (await doctor(url, ...brand)).stdout
  t.match(right, /^ok {5}gateway: .* accepts the log-in/m)
  t.notMatch(right, /^warn {3}gateway/m)
  const mistakes: [what: string, address: string, args: string[], said: RegExp][] = [
    ['brand forgotten', url, [], /other words: start with --brand-path minio --brand-header amz\./],
    ['path in the address', `${url}/minio`, brand, /the path in --gateway-url leads past the gateway: give http:\S+\./],
    ['both', `${url}/minio/`, [], /leads past the gateway: give http:\S+ with --brand-path minio --brand-header amz\./],
    ['console off, or the S3 port', s3, brand, /answers S3 and no JSON-RPC at \/minio\/webrpc.*MINIO_BROWSER=on/],
  ]
  for (const [what, address, args, said] of mistakes) {
    const { code, stdout } = await doctor(address, ...args)
    const line = stdout.split('\n').find((text) => text.startsWith('WRONG  gateway: ')) ?? stdout
    t.match([code, line], [1, said], what)
  }
})
t.test('doctor speaks of a running server, and reports without secrets', async (t) => {
  const server = await startDealgate(t)
  const url = new URL(server.endpoint)
  const keys = ['--access-key', server.accessKey, '--secret-key', server.secretKey]
  const doctor = (...args: string[]) => runCli(['doctor', ...args])

  const local = await doctor('--data', server.data, '--port', url.port)
  t.equal(local.code, 0, local.stdout)
  t.match(local.stdout, `ok     server: ${server.endpoint} is ready; its clock is `)
  t.match(local.stdout, `ok     requests: ListBuckets with ${server.accessKey} is answered\n`)
  t.match(local.stdout, 'ok     gateway: embedded in the running dealgate, without quirks\n')
  t.notMatch(local.stdout, 'websites')
  const taken = ['--data', join(temporaryFolder(t), 'fresh'), '--port', '0', '--website-port', url.port]
  t.match((await doctor(...taken)).stdout, /^WRONG {2}websites: .*--website-port/m)

  const elsewhere = join(temporaryFolder(t), 'none')
  const away = await doctor('--endpoint-url', server.endpoint, '--data', elsewhere, ...keys)
  t.equal(away.code, 0, away.stdout)
  t.match(away.stdout, /^ok {5}server: .*\nok {5}requests: /m)
  t.notOk(existsSync(elsewhere), 'nothing is made here')
  const forged = ['--access-key', server.accessKey, '--secret-key', 'z'.repeat(40)]
  const wrong = await doctor('--endpoint-url', server.endpoint, ...forged)
  t.equal(wrong.code, 1)
  t.match(wrong.stdout, /^WRONG {2}requests: ListBuckets with \S+ is refused: SignatureDoesNotMatch\./m)
  const none = await doctor('--endpoint-url', 'http://127.0.0.1:1')
  t.match(none.stdout, /^WRONG {2}server: http:\/\/127\.0\.0\.1:1 does not answer: /m)

  const sealing = 'b'.repeat(64)
  const hook = 'orders=https://hook:hookpassword@127.0.0.1/x'
  const secrets = ['--sealing-key', sealing, '--webhook', hook, '--plugin', 'deal', '--body-idle-seconds', '77']
  const state = ['--state', 'redis://user:redispassword@127.0.0.1:1/0']
  const report = await doctor('--report', '--data', server.data, '--port', url.port, ...keys, ...secrets, ...state)
  t.match(report.stdout, /^```text\ndealgate \S+, Node \S+, OpenSSL .*\n/)
  t.match(report.stdout, /\n```\n$/)
  t.match(report.stdout, /^--body-idle-seconds 77$/m)
  t.match(report.stdout, /^--sealing-key \(secret\)$/m)
  t.match(report.stdout, /^WRONG {2}state store: /m)
  for (const secret of [sealing, 'hookpassword', 'redispassword', server.secretKey])
    t.notOk(report.stdout.includes(secret), `${secret} is not in the report`)
})

t.test('doctor says why a server is not ready, and how wrong its clock is', async (t) => {
  let ready = false
  const server = createServer((_, response) => {
    response.setHeader('x-amz-request-id', '1')
    // The header has whole seconds, and half of the time of the request counts.
    response.setHeader('date', new Date(Date.now() - 350_000).toUTCString())
    if (ready) return void response.end('{"status":"ready","problem":"The state store has come back empty."}')
    response.writeHead(503, { 'content-type': 'application/xml' })
    response.end(
      '<Error><Code>ServiceUnavailable</Code><Message>The object gateway did not answer in time.</Message></Error>',
    )
  })
  const url = await listen(server, t)
  const doctor = () => runCli(['doctor', '--endpoint-url', url, '--data', join(t.testdirName, 'none')])
  t.match((await doctor()).stdout, `WRONG  server: ${url} is not ready: The object gateway did not answer in time.\n`)
  ready = true
  const { stdout } = await doctor()
  t.match(stdout, /^warn {3}server: The state store has come back empty\.$/m)
  t.match(stdout, /^warn {3}server: its clock is 3\d\d s behind this one\. Set both with NTP\.$/m)
})

t.test('no part of a password is in a report, whatever an error says', async (t) => {
  const config = { state: 'postgres://user:half%40password@db/x' } as Config
  for (const [text, shown] of [
    ['cannot connect to postgres://user:half@password@db/x', 'cannot connect to postgres://(secret)@db/x'],
    ['password half%40password is wrong', 'password (secret) is wrong'],
    ['http://127.0.0.1:1/a does not answer: a@b', 'http://127.0.0.1:1/a does not answer: a@b'],
  ] as const)
    t.equal(withoutSecrets(text, config), shown)
})

t.test('a credentials file that others can read: at the start and in doctor', async (t) => {
  const data = dataFolder(t)
  const file = join(data, 'credentials.json')
  t.match(await runCli(['keys', 'add', '--data', data]), { code: 0 })
  // Another test may use the default ports.
  const ports = ['--port', '--gateway-port', '--platform-port', '--payment-port'].flatMap((flag) => [flag, '0'])
  const doctor = () => runCli(['doctor', '--data', data, ...ports])
  t.match(await doctor(), { code: 0, stdout: /^ok {5}credentials file: 1 key pairs/m })
  for (const [mode, code, said] of [
    [0o640, 0, /^warn {3}credentials file: the group of the file can read .*chmod 600/m],
    [0o644, 1, /^WRONG {2}credentials file: every user of this machine can read .*chmod 600/m],
  ] as const) {
    chmodSync(file, mode)
    t.match(await doctor(), { code, stdout: said })
  }
  const { log } = await startDealgate(t, { data })
  t.match(log, 'every user of this machine can read the cred')
})

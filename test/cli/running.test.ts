import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import t from 'tap'
import { temporaryFolder } from '../support/content/folders.js'
import { writeKeystore } from '../support/content/keystore.js'
import { runCli } from '../support/server/cli.js'
import { startDealgate } from '../support/server/dealgate.js'
import { listen } from '../support/server/listen.js'

const PASSWORD = 'correct horse'

t.test('the data folder says where its server is while that runs', async (t) => {
  const server = await startDealgate(t)
  const record = join(server.data, 'running.json')
  t.match(JSON.parse(readFileSync(record, 'utf8')), {
    endpoint: server.endpoint,
    gateway: server.gateway,
    platform: server.platform,
    payment: server.payment,
  })
  t.equal(statSync(record).mode & 0o777, 0o600)

  const { code, stdout } = await runCli(['keys', 'env', '--data', server.data])
  t.equal(code, 0)
  const evaluated = spawnSync('sh', ['-c', `eval "$1"; env`, 'sh', stdout], { encoding: 'utf8', env: {} })
  t.match(evaluated.stdout, `AWS_ACCESS_KEY_ID=${server.accessKey}\n`)
  t.match(evaluated.stdout, `AWS_SECRET_ACCESS_KEY=${server.secretKey}\n`)
  t.match(evaluated.stdout, `AWS_ENDPOINT_URL=${server.endpoint}\n`)
  const presigned = await runCli(['presign', 's3://-/aws-model.json', '--data', server.data])
  t.equal((await fetch(presigned.stdout.trim())).status, 200, 'presign takes the endpoint of the server')

  // Variables and profiles of aws-cli take the place of the key pair.
  const env = { AWS_ACCESS_KEY_ID: 'OTHER', AWS_SECRET_ACCESS_KEY: 'secret-of-other', AWS_SESSION_TOKEN: 'a token' }
  const byOther = await runCli(['presign', 's3://a/b', '--data', server.data], env)
  t.match(byOther.stdout, /X-Amz-Credential=OTHER%2F/)
  t.match(byOther.stdout, 'X-Amz-Security-Token=a%20token')
  const elsewhere = { AWS_ENDPOINT_URL: 'https://s3.example.com', AWS_REGION: 'eu-north-1' }
  const there = await runCli(['presign', 's3://a/b', '--data', server.data], elsewhere)
  t.match(there.stdout, /^https:\/\/s3\.example\.com\/a\/b\?.*eu-north-1/)
  const at = join(temporaryFolder(t), 'credentials')
  writeFileSync(at, '[mine]\naws_access_key_id = MINE\naws_secret_access_key = secret-of-mine\n')
  const profile = { AWS_SHARED_CREDENTIALS_FILE: at, AWS_CONFIG_FILE: `${at}-none`, AWS_PROFILE: 'mine' }
  t.match((await runCli(['presign', 's3://a/b', '--data', server.data], profile)).stdout, /Credential=MINE%2F/)

  await server.stop()
  t.notOk(existsSync(record))
})

t.test('a command about a data folder refuses another folder, and names the servers that run', async (t) => {
  const server = await startDealgate(t)
  const folder = temporaryFolder(t)
  const elsewhere = join(folder, 'elsewhere')
  const commands = [
    ['keys', 'add'],
    ['keys', 'list'],
    ['keys', 'remove', 'some-key'],
    ['account', 'add'],
    ['account', 'add', '--email', 'one@example.com'],
    ['account', 'list'],
    ['account', 'remove', 'some-key'],
    ['account', 'rotate', 'some-key'],
    ['account', 'quota', 'some-key', '--bytes', '1'],
    ['account', 'password', 'one@example.com'],
    ['account', 'api-keys', 'one@example.com'],
    ['encryption', 'list'],
    ['encryption', 'rotate'],
    ['encryption', 'export'],
    ['encryption', 'recipients'],
    ['state', 'accept'],
    ['wallet', 'create', '--password', PASSWORD],
    ['wallet', 'fund', '1', '--address', `0x${'1'.repeat(40)}`],
    ['wallet', 'balance', '--address', `0x${'1'.repeat(40)}`],
  ]
  const hint = `${elsewhere} is no data folder of dealgate, so that nothing was read or written there. A dealgate runs with the data folder ${server.data} (${server.endpoint}, process ${server.pid}): add --data ${server.data}\n`
  for (const command of commands) {
    const refused = await runCli([...command, '--data', elsewhere])
    t.match(refused, { code: 1, stdout: '', stderr: `dealgate: ${hint}` }, command.join(' '))
  }
  t.notOk(existsSync(elsewhere), 'nothing was made')

  t.match(await runCli(['keys', 'list', '--data', folder]), { code: 1, stderr: /is no data folder/ }, 'an empty one')
  const there = await runCli(['keys', 'add', '--data', elsewhere, '--credentials-file', join(folder, 'keys.json')])
  t.equal(there.code, 0, 'another file takes the place of the folder')
  const wallet = ['wallet', 'create', '--password', PASSWORD, '--wallet-file', join(folder, 'wallet.json')]
  t.equal((await runCli([...wallet, '--data', elsewhere])).code, 0)
  t.notOk(existsSync(elsewhere))

  await server.kill9()
  const alone = await runCli(['keys', 'list', '--data', elsewhere])
  t.match(alone, { code: 1, stderr: /Start dealgate once, or name its data folder by --data\.\n$/ }, 'it was killed')
})

t.test('no secret is sent to another server that has the default port', async (t) => {
  const data = temporaryFolder(t)
  const paths: string[] = []
  const server = createServer((request, response) => {
    paths.push(request.url ?? '')
    response.end('{}')
  })
  const url = await listen(server, t)
  const wallet = join(data, 'wallet.json')
  writeKeystore(wallet, PASSWORD, Buffer.alloc(32, 7))
  const pay = ['wallet', 'pay', '1', '--yes', '--password', PASSWORD, '--wallet-file', wallet, '--data', data]
  const refused = { code: 1, stderr: /No dealgate .*--data.*--payment-url/ }
  t.match(await runCli(pay), refused)
  // What a server leaves behind that was killed before the machine started again.
  const record = { endpoint: url, gateway: url, platform: url, payment: url }
  writeFileSync(join(data, 'running.json'), JSON.stringify({ ...record, pid: process.pid, boot: 0 }))
  t.match(await runCli(pay), refused)
  const { pid } = spawnSync(process.execPath, ['--version'])
  writeFileSync(join(data, 'running.json'), JSON.stringify({ ...record, pid, boot: Date.now() }))
  t.match(await runCli(pay), refused)
  const login = await runCli(['login', '--email', 'a@example.com', '--data', data])
  t.match(login, { code: 1, stderr: /No dealgate .*--platform-url/ })
  t.same(paths, [])
})

t.test('help of a command by its words', async (t) => {
  const { stdout } = await runCli(['keys', 'add', '--help'])
  t.same(await runCli(['help', 'keys', 'add']), { code: 0, signal: null, stdout, stderr: '' })
  t.equal((await runCli(['help'])).stdout, (await runCli(['--help'])).stdout)
  t.match(await runCli(['help', 'kyes', 'add']), { code: 2, stderr: /no command kyes add\. Did you mean keys\?/ })
})

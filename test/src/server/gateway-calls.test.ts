import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { account, keysFor, logsIn, type Pair } from '../../cli/account-commands.js'
import { Client } from '../../services/gateway/client.js'
import { dataFolder, temporaryFolder } from '../../support/content/folders.js'
import { firstAccount } from '../../support/gateway/embedded.js'
import { Command, runCli, stopAtEnd } from '../../support/server/cli.js'
import { startDealgate } from '../../support/server/dealgate.js'
import { signedRequest } from '../../support/sign/signed-request.js'

const ROTATE = '/-/gateway/v1/credentials/rotate'

type Keys = Awaited<ReturnType<typeof keysFor>>

function call(endpoint: string, keys: Keys, method: string, path: string, body = '', query = {}) {
  return signedRequest(endpoint, keys, { method, path, body, query, headers: { 'content-type': 'application/json' } })
}

/** Changes the keys as another client of the gateway does. */
async function setAuth(url: string, current: Pair, next: Pair): Promise<void> {
  const client = new Client(url, 'gateway')
  const { token } = await client.call('Login', { username: current.accessKey, password: current.secretKey })
  client.token = token
  await client.call('SetAuth', {
    currentAccessKey: current.accessKey,
    currentSecretKey: current.secretKey,
    newAccessKey: next.accessKey,
    newSecretKey: next.secretKey,
  })
}

t.test('two accounts: what the gateway says to each, and new keys for one of them', async (t) => {
  const data = join(temporaryFolder(t), 'data')
  const running = await startDealgate(t, { data })
  const { endpoint, gateway } = running
  const owner = { accessKeyId: running.accessKey, secretAccessKey: running.secretKey }
  const theirs = await account(data, 'add')
  const tenant = await keysFor(data, theirs)
  const beside = await keysFor(data, theirs)
  const limited = await keysFor(data, theirs, '--right', 'read:theirs', '--allow', 'gateway:*')

  await call(endpoint, tenant, 'PUT', '/theirs')
  await call(endpoint, tenant, 'PUT', '/theirs/key', '12345')
  const info = async (keys: Keys, what: string) =>
    JSON.parse((await call(endpoint, keys, 'GET', `/-/gateway/v1/${what}`)).body)
  t.match(await info(tenant, 'server-info'), { IsIamUser: true, Version: /\d/, Features: /paged-listing/ })
  t.match(await info(owner, 'server-info'), { IsIamUser: false, Region: 'us-east-1' })
  t.match(await info(limited, 'storage-info'), { Used: 5, Total: Number, Available: Number })
  t.match(await info(owner, 'storage-info'), { Used: 0 })

  t.match(await call(endpoint, limited, 'POST', ROTATE, '{}'), { status: 403, body: /"AccessDenied"/ })
  for (const body of ['{"NewAccessKey":"other-key"}', '{"NewSecretKey":"short"}'])
    t.match(await call(endpoint, tenant, 'POST', ROTATE, body), { status: 400, body: /"InvalidArgument"/ }, body)
  t.ok(await logsIn(gateway, theirs), 'nothing has changed')

  const rotated = await call(endpoint, tenant, 'POST', ROTATE, '{}')
  t.match(rotated, { status: 200 })
  t.same(JSON.parse(rotated.body), { AccessKey: theirs.accessKey })
  t.notOk(await logsIn(gateway, theirs))
  const text = readFileSync(join(data, 'credentials.json'), 'utf8')
  t.notMatch(text, theirs.secretKey)
  for (const { account: stored } of JSON.parse(text))
    t.ok(await logsIn(gateway, stored), 'all key pairs of the account')
  for (const keys of [tenant, beside, limited])
    t.equal((await call(endpoint, keys, 'GET', '/theirs/key')).body, '12345')
  t.same(JSON.parse(readFileSync(join(data, 'gateway-keys.json'), 'utf8')), [], 'the credentials file has the keys')

  const first = firstAccount(data)
  const own = await call(endpoint, owner, 'POST', ROTATE, '{"NewAccessKey":"renamed","NewSecretKey":"chosen-secret"}')
  t.same(JSON.parse(own.body), { AccessKey: 'renamed' })
  const changes = async (of: string) =>
    JSON.parse((await call(endpoint, owner, 'GET', `/-/changes/v1`, '', { of })).body).Changes.map(
      ({ AccessKeyId }: Record<string, string>) => AccessKeyId,
    )
  t.same(await changes('server'), [owner.accessKeyId], 'tenants cannot fill the list of the owner')
  t.same(await changes('accounts'), [tenant.accessKeyId])
  t.same(firstAccount(data), { accessKey: 'renamed', secretKey: 'chosen-secret' })
  t.notOk(await logsIn(gateway, first))
  t.equal((await call(endpoint, owner, 'PUT', '/mine')).status, 200)
  t.equal((await call(endpoint, tenant, 'GET', '/theirs/key')).body, '12345', 'the other account has kept its keys')
  const { stderr } = await running.stop()
  t.notMatch(stderr, 'chosen-secret')
})

t.test('an external gateway: the data folder has the current keys, until others are configured', async (t) => {
  const folder = temporaryFolder(t)
  const first = { accessKey: 'configured', secretKey: 'configured-secret' }
  const pairOf = ({ accessKey, secretKey }: Pair) => [
    '--gateway-access-key',
    accessKey,
    '--gateway-secret-key',
    secretKey,
  ]
  const args = ['services', '--gateway-port', '0', '--data', join(folder, 'gateway')]
  const services = new Command<{ gateway: string }>(args, {
    DEALGATE_GATEWAY_ACCESS_KEY: first.accessKey,
    DEALGATE_GATEWAY_SECRET_KEY: first.secretKey,
  })
  stopAtEnd(t, 'services', services)
  await services.start()
  const url = services.line.gateway
  const data = join(folder, 'proxy')
  const start = (pair: Pair) => startDealgate(t, { data, gateway: { url, ...pair } })
  const before = await start(first)
  const owner = { accessKeyId: before.accessKey, secretAccessKey: before.secretKey }
  t.equal((await call(before.endpoint, owner, 'PUT', '/bucket')).status, 200)
  for (let round = 0; round < 3; round++)
    t.equal((await call(before.endpoint, owner, 'POST', ROTATE, '{}')).status, 200)
  t.notOk(await logsIn(url, first))
  t.equal((await call(before.endpoint, owner, 'PUT', '/bucket/key', 'x')).status, 200)
  await before.stop()

  const kept = JSON.parse(readFileSync(join(data, 'gateway-keys.json'), 'utf8'))
  t.match(kept, [{ from: first, confirmed: true }])
  t.equal(kept.length, 1)
  const doctor = await runCli(['doctor', '--data', data, '--gateway-url', url, ...pairOf(first)])
  t.notMatch(doctor.stdout, /does not accept/)
  const next = await start(kept[0].to)
  t.equal((await call(next.endpoint, owner, 'GET', '/bucket/key')).body, 'x')
  await next.stop()

  const third = { accessKey: first.accessKey, secretKey: 'third-secret' }
  writeFileSync(
    join(data, 'gateway-keys.json'),
    JSON.stringify([kept[0], { from: kept[0].to, to: third, confirmed: false }]),
  )
  await setAuth(url, kept[0].to, third)
  const killed = await start(first)
  t.equal(
    (await call(killed.endpoint, owner, 'GET', '/bucket/key')).body,
    'x',
    'the options have the former keys, and a second change was cut off',
  )
  await killed.stop()
  await setAuth(url, third, first)
  const back = await start(first)
  t.equal((await call(back.endpoint, owner, 'GET', '/bucket/key')).body, 'x', 'the gateway was given the former keys')
  await back.stop()
  t.same(JSON.parse(readFileSync(join(data, 'gateway-keys.json'), 'utf8')), [])

  writeFileSync(join(data, 'gateway-keys.json'), '{"secret":"do-not-tell"}')
  const refused = await runCli(['serve', '--data', data, '--gateway-url', url, ...pairOf(first), '--port', '0'])
  t.match(refused, { code: 1, stderr: /gateway-keys\.json does not hold keys/ })
  t.notMatch(refused.stderr, 'do-not-tell')
})

/** The suite runs a sample; `npm run stress` runs more. */
const ROUNDS = Number(process.env.DEALGATE_STRESS_ROUNDS ?? 2)

t.test('killed at any time, the server gets in afterwards', async (t) => {
  const data = dataFolder(t)
  const tenant = await keysFor(data, await account(data, 'add'))
  const running = await startDealgate(t, { data })
  for (let round = 0; round < ROUNDS; round++) {
    t.equal((await call(running.endpoint, tenant, 'GET', '/')).status, 200, 'it gets in')
    const rotated = call(running.endpoint, tenant, 'POST', ROTATE, '{}').catch(() => {})
    await Promise.race([delay((round % 5) * 4 + 4), rotated])
    await running.kill9()
    await rotated
    await running.start()
  }
  t.equal((await call(running.endpoint, tenant, 'GET', '/')).status, 200, 'it gets in')
})

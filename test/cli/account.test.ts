import { existsSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { temporaryFolder } from '../support/content/folders.js'
import { firstAccount } from '../support/gateway/embedded.js'
import { runCli } from '../support/server/cli.js'
import { startDealgate } from '../support/server/dealgate.js'
import { signedRequest } from '../support/sign/signed-request.js'
import { account, keysFor, logsIn, type Pair } from './account-commands.js'

t.test('accounts that are added, rotated and removed count at once, without a restart', async (t) => {
  const data = join(temporaryFolder(t), 'data')
  const added = await account(data, 'add', '--name', 'before the first start')
  const running = await startDealgate(t, { data })
  const owner = { accessKeyId: running.accessKey, secretAccessKey: running.secretKey }
  const second = await account(data, 'add', '--name', 'second')
  t.ok(await logsIn(running.gateway, added))
  t.ok(await logsIn(running.gateway, second))

  const tenant = await keysFor(data, second)
  const ask = (keys: typeof tenant, method: string, path: string, body = '') =>
    signedRequest(running.endpoint, keys, { method, path, body })
  t.equal((await ask(tenant, 'PUT', '/theirs')).status, 200)
  t.equal((await ask(tenant, 'PUT', '/theirs/key', 'body')).status, 200)
  t.equal((await ask(owner, 'PUT', '/mine')).status, 200)
  t.equal((await ask(owner, 'PUT', '/theirs')).code, 'BucketAlreadyExists')
  t.equal((await ask(owner, 'GET', '/theirs/key')).code, 'AccessDenied')
  t.equal((await ask(tenant, 'GET', '/mine/key')).code, 'AccessDenied')

  const listed = await runCli(['account', 'list', '--data', data])
  t.match(listed.stdout, /^ACCESS KEY +NAME +BUCKETS +CREATED +CANONICAL ID\n/)
  t.match(listed.stdout, new RegExp(`\\n${second.accessKey} +second +1 +\\S+Z +[0-9a-f]{64}\\n`))
  t.notMatch(listed.stdout, second.secretKey)
  const accounts = await account<{ accessKey: string; isIamUser: boolean; buckets: number }[]>(data, 'list')
  t.match(accounts, [
    { accessKey: firstAccount(data).accessKey, isIamUser: false, buckets: 1 },
    { accessKey: added.accessKey, isIamUser: true, buckets: 0 },
    { accessKey: second.accessKey, isIamUser: true, buckets: 1 },
  ])

  const rotated = await account<Pair & { keys: string[] }>(data, 'rotate', second.accessKey)
  t.same(rotated.keys, [tenant.accessKeyId])
  t.notOk(await logsIn(running.gateway, second))
  t.ok(await logsIn(running.gateway, rotated))
  t.equal((await ask(tenant, 'GET', '/theirs/key')).body, 'body', 'the key pair of S3 has the new secret')
  await account(data, 'rotate', firstAccount(data).accessKey)
  t.equal((await ask(owner, 'PUT', '/mine/key', 'x')).status, 200, 'the server follows its own account')

  t.match(await runCli(['account', 'remove', second.accessKey, '--data', data]), {
    code: 1,
    stderr: /still owns buckets, such as theirs/,
  })
  await ask(tenant, 'DELETE', '/theirs/key')
  await ask(tenant, 'DELETE', '/theirs')
  t.match(await runCli(['account', 'remove', second.accessKey, '--data', data]), {
    code: 0,
    stdout: new RegExp(`act as it and no longer work: ${tenant.accessKeyId}`),
  })
  t.equal((await ask(tenant, 'GET', '/')).status, 503)
  const { stderr } = await running.stop()
  for (const { secretKey } of [added, second, rotated]) t.notMatch(stderr, secretKey)
})

t.test('what the commands refuse', async (t) => {
  const data = join(temporaryFolder(t), 'data')
  const args = ['--account-access-key', 'mine', '--account-secret-key', 'my-own-secret']
  t.match(await runCli(['account', 'list', '--data', data]), { code: 1, stderr: /has no embedded gateway yet/ })
  t.notOk(existsSync(data), 'nothing was created')
  t.match(await account(data, 'add', ...args), { accessKey: 'mine', secretKey: 'my-own-secret' })
  for (const [code, wrong, stderr] of [
    [1, ['add', ...args], /Another account has this access key/],
    [1, ['add', '--account-access-key', 'a', '--account-secret-key', 'my-own-secret'], /3 to 128 printable/],
    [2, ['add', '--account-access-key', 'other'], /go together/],
    [2, ['add', '--name', 'two\nlines'], /--name must have/],
    [2, ['add', 'excess'], /takes no such argument/],
    [1, ['remove', 'nobody'], /no account with the access key nobody/],
    [1, ['rotate', 'nobody'], /no account with the access key nobody/],
  ] as const)
    t.match(await runCli(['account', ...wrong, '--data', data]), { code, stderr, stdout: '' }, wrong.join(' '))
  const away = {
    DEALGATE_GATEWAY_URL: 'http://127.0.0.1:1',
    DEALGATE_GATEWAY_ACCESS_KEY: 'abc',
    DEALGATE_GATEWAY_SECRET_KEY: 'abcdefgh',
  }
  t.match(await runCli(['account', 'list', '--data', data], away), { code: 1, stderr: /are managed there/ })
  t.match(await runCli(['account', '--help']), { code: 0, stdout: /rotate/ })
  t.equal(statSync(join(data, 'services', 'gateway', 'index.db')).mode & 0o777, 0o600)

  const running = await startDealgate(t, { data })
  const { accessKey } = firstAccount(data)
  t.match(await runCli(['account', 'remove', accessKey, '--data', data]), { code: 1, stderr: /first account/ })
  writeFileSync(join(data, 'credentials.json'), 'broken')
  const rotated = await runCli(['account', 'rotate', 'mine', '--data', data])
  t.match(rotated, { code: 1, stdout: /secret key {2}\S+/, stderr: /still has the former one: .* Repeat the command/s })
  await running.stop()
})

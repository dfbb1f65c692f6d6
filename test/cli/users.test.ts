import { join } from 'node:path'
import t from 'tap'
import { send } from '../services/platform/platform-client.js'
import { temporaryFolder } from '../support/content/folders.js'
import { piped, runCli } from '../support/server/cli.js'
import { startDealgate } from '../support/server/dealgate.js'

t.test('users of the task platform, without a restart', async (t) => {
  const data = join(temporaryFolder(t), 'data')
  const at = ['--data', data, '--print', 'json']
  const early = await runCli(['account', 'add', '--email', 'client@example.com', ...at])
  t.match(early, { code: 1, stderr: /is no data folder of dealgate/ })
  const { platform } = await startDealgate(t, { data })
  const enter = async (email: string, password: string) => {
    const { status, json } = await send(platform, 'POST', '/auth/login', { body: { email, password } })
    return status === 200 ? (json.auth_token as string) : undefined
  }
  const added = await runCli(['account', 'add', '--email', 'client@example.com', ...at])
  t.equal(added.code, 0, added.stderr)
  const user = JSON.parse(added.stdout)
  t.same(Object.keys(user), ['email', 'password'])
  const token = await enter(user.email, user.password)
  t.ok(token)
  const made = await send(platform, 'POST', '/user/api_keys/jwt', { token, body: { key_name: 'mine' } })
  const { apikey, access_token } = made.json.auth_token

  const changed = await piped('chosen by them\n', ['account', 'password', user.email, '--password', '-', ...at])
  t.same(JSON.parse(changed.stdout), { email: user.email, apiKeys: 1 }, 'a password that was given is not printed')
  t.equal(await enter(user.email, user.password), undefined)
  t.ok(await enter(user.email, 'chosen by them'))
  const first = await runCli(['account', 'password', 'owner@localhost', '--data', data])
  const word = /^password {2}(\S+)$/m.exec(first.stdout)?.[1] ?? ''
  t.ok(await enter('owner@localhost', word), 'also of the first user')

  const listed = await runCli(['account', 'api-keys', user.email, '--data', data])
  t.match(listed.stdout, new RegExp(`^API KEY +NAME +CREATED\n${apikey} +mine +\\S+Z\n$`))
  const revoking = await runCli(['account', 'api-keys', user.email, '--revoke', 'all', ...at])
  t.match(JSON.parse(revoking.stdout), [{ apiKey: apikey, name: 'mine' }])
  await send(platform, 'POST', '/user/api_keys/jwt', {
    token: await enter(user.email, 'chosen by them'),
    body: { key_name: 'x' },
  })
  const told = await runCli(['account', 'api-keys', user.email, '--revoke', 'all', '--data', data])
  t.match(told.stdout, /Revoked: 1\n[\s\S]*key pair of the account at the gateway stays valid.*dealgate account rotate/)
  t.match(first.stdout, /stays valid.*dealgate account rotate/)
  t.equal((await send(platform, 'POST', '/user/api_keys/jwt', { body: { apikey, access_token } })).status, 401)

  const both = ['account', 'add', '--email', 'x@example.com', '--name', 'x', ...at]
  t.match(await runCli(both), { code: 2, stderr: /--email goes with --password alone/ })
  t.match(await runCli(['account', 'add', '--password', 'x', ...at]), { code: 2, stderr: /--password needs --email/ })
  t.match(await runCli(['account', 'password', 'x@example.com', ...at]), { code: 1, stderr: /no user x@example.com/ })
})

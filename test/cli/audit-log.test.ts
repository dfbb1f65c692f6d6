import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { AuditEntry } from '../../src/server/audit.js'
import { dataFolder, temporaryFolder } from '../support/content/folders.js'
import { runCli } from '../support/server/cli.js'
import { startDealgate } from '../support/server/dealgate.js'
import { until } from '../support/waiting.js'

// `--audit-log` of commands and signals.

const entriesOf = (path: string): AuditEntry[] =>
  readFileSync(path, { encoding: 'utf8', flag: 'a+' })
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line))

t.test('commands and signals that change access or money are recorded', async (t) => {
  const folder = temporaryFolder(t)
  const audit = join(folder, 'audit.log')
  const server = await startDealgate(t, { args: ['--audit-log', audit] })
  const cli = async (...args: string[]) => {
    const common = ['--data', server.data, '--audit-log', audit, '--print', 'json']
    const { code, stdout } = await runCli([...args, ...common])
    return { code, ...(code === 0 && JSON.parse(stdout)) }
  }
  const { accessKey, secretKey } = await cli('account', 'add')
  await cli('account', 'quota', accessKey)
  await cli('account', 'quota', accessKey, '--bytes', '1000')
  const pair = ['--account-access-key', accessKey, '--account-secret-key', secretKey]
  const { accessKeyId, secretAccessKey } = await cli('keys', 'add', ...pair)
  await cli('keys', 'remove', accessKeyId)
  t.equal((await cli('keys', 'remove', accessKeyId)).code, 1)
  const address = `0x${'1'.repeat(40)}`
  await cli('wallet', 'fund', '12.5', '--address', address)
  process.kill(server.pid, 'SIGHUP')
  await until('the signal is recorded', () => entriesOf(audit).at(-1)?.action === 'SIGHUP')
  const entries = entriesOf(audit)
  t.same(
    entries.map(({ action, resource, amount, outcome }) => [action, resource, amount, outcome]),
    [
      ['account add', accessKey, undefined, 'ok'],
      ['account quota', accessKey, undefined, 'ok'],
      ['keys add', accessKeyId, undefined, 'ok'],
      ['keys remove', accessKeyId, undefined, 'ok'],
      ['keys remove', accessKeyId, undefined, 'failed'],
      ['wallet fund', address, '12.5', 'ok'],
      ['SIGHUP', undefined, undefined, 'ok'],
    ],
  )
  t.ok(entries.slice(0, -1).every(({ user, time }) => user && time))
  const text = readFileSync(audit, 'utf8')
  for (const secret of [secretKey, secretAccessKey]) t.notOk(text.includes(secret))
})

t.test('a command that cannot be recorded changes nothing', async (t) => {
  const data = dataFolder(t)
  const common = ['--data', data, '--print', 'json']
  const { code, stderr } = await runCli(['keys', 'add', ...common, '--audit-log', join(data, 'none/audit.log')])
  t.equal(code, 1)
  t.match(stderr, /Cannot write to the file of --audit-log: there is no folder/)
  t.same(JSON.parse((await runCli(['keys', 'list', ...common])).stdout), [])
})

import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import t, { type Test } from 'tap'
import { newDatabase } from '../services/engine.js'
import { postgres } from '../src/state/servers.js'
import { temporaryFolder } from '../support/content/folders.js'
import { type Command, runCli, startCli } from '../support/server/cli.js'

// `--database`: the tables of the embedded services in PostgreSQL, and `dealgate state copy` between that and a folder.

interface Services {
  readonly gateway: string
  readonly platform: string
  readonly payment: string
  readonly accessKey: string
}

const PORTS = ['gateway', 'platform', 'payment'].flatMap((service) => [`--${service}-port`, '0'])
const ADDRESS = `0x${'1'.repeat(40)}`

const start = (t: Test, data: string, database?: string): Promise<Command<Services>> =>
  startCli(t, ['services', '--data', data, ...PORTS], environmentOf(database))

function environmentOf(database: string | undefined): Record<string, string> {
  return database === undefined ? {} : { DEALGATE_DATABASE: database }
}

/** Runs a command beside the services, and returns what it prints. */
async function besides(data: string, database: string | undefined, ...args: string[]) {
  const all = [...args, '--data', data, '--print', 'json']
  const { code, stdout, stderr } = await runCli(all, environmentOf(database))
  if (code !== 0) throw new Error(stderr)
  return JSON.parse(stdout)
}

t.test('the services and the commands beside them use one database', { skip: postgres.skip }, async (t) => {
  const url = await newDatabase()
  const data = temporaryFolder(t)
  const services = await start(t, data, url)
  const { accessKey, gateway, platform, payment } = services.line
  t.match(await besides(data, url, 'account', 'list'), [{ accessKey }])
  t.match(await besides(data, url, 'account', 'password', 'owner@localhost'), { password: String })
  t.match(await besides(data, url, 'account', 'add', '--email', 'one@example.com'), { email: 'one@example.com' })
  t.match(await besides(data, url, 'wallet', 'fund', '2.5', '--address', ADDRESS), { balance: '2.5' })
  for (const service of [gateway, platform, payment]) t.equal((await fetch(new URL('/-/ready', service))).status, 200)
  await t.rejects(besides(data, undefined, 'account', 'list'), /no embedded gateway yet/, 'nothing is in the folder')
  const from = ['state', 'copy', '--from', url]
  t.match(await runCli([...from, '--to', temporaryFolder(t)]), {
    code: 1,
    stderr: /A service or another copy uses the/,
  })
  t.match(await services.stop(), { code: 0 })

  const folder = temporaryFolder(t)
  const copied = await runCli([...from, '--to', folder, '--print', 'json'])
  t.equal(copied.stderr, '')
  const users = JSON.parse(copied.stdout).find(({ table }: { table: string }) => table === 'users')
  t.match(users, { service: 'platform', rows: 2 })
  const again = await start(t, folder)
  t.equal(again.line.accessKey, accessKey)
  t.match(await besides(folder, undefined, 'wallet', 'balance', '--address', ADDRESS), { balance: '2.5' })
  t.match(await runCli(['state', 'copy', '--from', folder, '--to', url]), { code: 1, stderr: /in use by another/ })
  t.match(await again.stop(), { code: 0 })
  const refused = await runCli(['state', 'copy', '--from', folder, '--to', url])
  t.match(refused, { code: 1, stderr: /has data of the gateway already: choose an empty place/ })
  const further = await newDatabase()
  const withSecret = further.replace('://dealgate@', '://dealgate:hidden@')
  const text = await runCli(['state', 'copy', '--from', folder, '--to', withSecret])
  t.match(text, { code: 0, stdout: /^platform +users +2 +[0-9a-f]{16}$/m })
  t.notMatch(text.stdout + text.stderr, /hidden/)
  await t.rejects(start(t, folder), /are in PostgreSQL: start with --database/)
  await t.rejects(start(t, data, further), /belongs to other tables .* remove .*\.postgres/)
  const within = join(data, 'services')
  const marks = readdirSync(within, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.postgres'))
  t.equal(marks.length, 4)
  for (const mark of marks) rmSync(join(within, mark))
  const last = await start(t, data, further)
  t.equal(last.line.accessKey, accessKey)
  t.match(await last.stop(), { code: 0 })
})

t.test('places of a copy that are none', async (t) => {
  for (const [args, message] of [
    [[], /--from and --to are required/],
    [['--from', 'redis://host', '--to', 'a'], /--from must be a data folder, or like postgres:/],
  ] as const) {
    t.match(await runCli(['state', 'copy', ...args]), { code: 2, stderr: message })
  }
  const none = join(temporaryFolder(t), 'none')
  t.match(await runCli(['state', 'copy', '--from', none, '--to', temporaryFolder(t)]), { code: 1, stderr: /no folder/ })
})

t.test('doctor examines the databases', async (t) => {
  const data = temporaryFolder(t)
  const doctor = async (database?: string) => {
    const args = ['doctor', '--data', data, '--port', '0', '--console-port', '0', ...PORTS]
    const { stdout } = await runCli(args, environmentOf(database))
    return stdout.split('\n').filter((line) => line.includes('databases: '))
  }
  t.same(await doctor(), [], 'there are none yet')
  await (await start(t, data)).stop()
  t.match(await doctor(), ['ok     databases: 4 in SQLite are whole'])
  const file = join(data, 'services', 'platform', 'platform.db')
  const bytes = readFileSync(file)
  // The head of the second page.
  writeFileSync(file, bytes.fill(255, 4096, 4096 + 12))
  t.match(await doctor(), [/^WRONG {2}databases: .*platform\.db is damaged: /])
  if (postgres.skip) return
  const url = await newDatabase()
  t.match(await doctor(url), [
    /^ok {5}databases: postgres:\/\/127\.0\.0\.1:\d+\/\w+ is version \d+.*, without tables of dealgate yet$/,
    /^warn {3}databases: PostgreSQL has `fsync` or/,
  ])
  const client = new pg.Client(url)
  await client.connect()
  await client.query('CREATE ROLE weak LOGIN; REVOKE CREATE ON DATABASE postgres FROM PUBLIC')
  await client.end()
  t.match(await doctor(url.replace('://dealgate@', '://weak@')), [/^WRONG {2}databases: The role weak may not create/])
  const { port } = new URL(url)
  t.match(await doctor(url.replace(`:${port}/`, ':1/')), [
    /^WRONG {2}databases: PostgreSQL \(--database\): .*ECONNREFUSED/,
  ])
})

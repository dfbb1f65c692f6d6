import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { newDatabase } from '../services/engine.js'
import { postgres } from '../src/state/servers.js'
import { temporaryFolder } from '../support/content/folders.js'
import { Aws, awsVersions } from '../support/programs/aws-cli.js'
import { runCli, startCli } from '../support/server/cli.js'
import { Dealgate } from '../support/server/dealgate.js'

// Several servers over one data folder and one PostgreSQL database, started at the same moment.

const { skip } = postgres
const PORTS = ['gateway', 'platform', 'payment'].flatMap((service) => [`--${service}-port`, '0'])

const environmentOf = (database?: string): Record<string, string> =>
  database === undefined ? {} : { DEALGATE_DATABASE: database }

const services = (t: Test, data: string, database?: string) =>
  startCli(t, ['services', '--data', data, ...PORTS], environmentOf(database))

t.test('three servers begin at once, and serve the same', { skip }, async (t) => {
  const [version] = await awsVersions(t)
  if (version === undefined) return
  const url = await newDatabase()
  const data = temporaryFolder(t)
  const args = ['--staging', 'gateway', '--lock-lease-seconds', '1']
  const env = { DEALGATE_DATABASE: url, DEALGATE_STATE: url }
  const all = Array.from({ length: 3 }, () => new Dealgate(data, { args, env }))
  for (const one of all) one.stopAtEnd(t)
  await Promise.all(all.map((one) => one.start()))
  t.equal(new Set(all.map(({ accessKey }) => accessKey)).size, 1, 'one key pair')
  t.equal(all.filter(({ platformPassword }) => platformPassword !== '').length, 1, 'one first user')
  t.same(readdirSync(join(data, 'spool')).sort(), ['server-0', 'server-1', 'server-2'])

  const [first, second, third] = all.map((one) => new Aws(version, one, temporaryFolder(t))) as [Aws, Aws, Aws]
  t.match(await runCli(['serve', '--data', data, '--port', '0', ...PORTS], env), {
    code: 1,
    stderr: /in use by another dealgate.*--staging/,
  })

  const file = join(temporaryFolder(t), 'file')
  writeFileSync(file, 'from one'.repeat(10_000))
  await first.s3('mb', 's3://shared')
  await second.s3('cp', file, 's3://shared/key')
  await third.s3('cp', 's3://shared/key', `${file}.back`)
  t.equal(readFileSync(`${file}.back`, 'utf8'), readFileSync(file, 'utf8'))
  await first.s3('rm', 's3://shared/key')
  t.match(await second.apiFailing('head-object', '--bucket', 'shared', '--key', 'key'), /404/)
})

t.test('tables in the folder and in PostgreSQL do not go together', { skip }, async (t) => {
  const url = await newDatabase()
  const data = temporaryFolder(t)
  const run = (database?: string) => runCli(['services', '--data', data, ...PORTS], environmentOf(database))
  const shared = await services(t, data, url)
  t.match(await run(), { code: 1, stderr: /in use by another running instance\. Stop that one or choose another/ })
  await shared.stop()
  t.match(await run(), { code: 1, stderr: /are in PostgreSQL: start with --database/ })
  const other = temporaryFolder(t)
  await services(t, other)
  const refused = await runCli(['services', '--data', other, ...PORTS], { DEALGATE_DATABASE: url })
  t.match(refused, { code: 1, stderr: /in use by another running instance\. Stop that one: it has its tables there/ })
})

import t from 'tap'
import { silentLog } from '../../../services/log.js'
import type { Schema } from '../../../services/store/database.js'
import { openPostgres } from '../../../services/store/postgres.js'
import { Run, RunTable } from '../../../services/store/runs.js'
import { startHanging } from '../../src/state/hanging.js'
import { postgres } from '../../src/state/servers.js'
import { until } from '../../support/waiting.js'

const schema = {
  owner: 'a test',
  name: 'test',
  steps: [],
  tables: (connection) => ({ runs: new RunTable(connection) }),
} satisfies Schema<{ runs: RunTable }>

t.test('runs outlast a time in which PostgreSQL was away for all', { skip: postgres.skip }, async (t) => {
  const server = await postgres.start(['-c', 'fsync=off'])
  t.teardown(() => server.stop())
  const begin = async () => {
    const way = await startHanging(t, server.url)
    const db = await openPostgres(way.url, schema, silentLog)
    t.teardown(() => db.close())
    return { way, db, run: await Run.begin(db) }
  }
  const [first, second, ended] = [await begin(), await begin(), await begin()]
  const watch = await openPostgres(server.url, schema, silentLog)
  t.teardown(() => watch.close())
  const seesSecond = () => first.run.isElsewhere(first.db.read, second.run.name)
  t.equal(await seesSecond(), true)
  await ended.run.end()
  t.equal(await first.run.isElsewhere(first.db.read, ended.run.name), false, 'one that has ended is over at once')

  first.way.hang()
  second.way.hang()
  const expired = async () => {
    const rows = await watch.ask('SELECT max(expires) < now() AS over FROM lease', [])
    return rows[0]?.over === 1
  }
  await until('their leases have expired', expired)
  first.way.moveTo(server.url)
  first.way.go()
  await until('the first has its lease again', async () => !(await expired()))
  t.equal(await seesSecond(), true, 'the second did not have the time to get its own')
  await until('the second is over when it does not come back', async () => !(await seesSecond()))

  second.way.moveTo(server.url)
  second.way.go()
  await until('it comes back', seesSecond)

  const sinceOfFirst = async () =>
    String((await watch.ask('SELECT since FROM lease WHERE name = $1', [first.run.name]))[0]?.since)
  const before = await sinceOfFirst()
  await watch.ask("UPDATE lease SET expires = now() - interval '1 s' WHERE name = $1", [first.run.name])
  await until('a late renewal leaves a gap', async () => (await sinceOfFirst()) !== before)
  for (const { run } of [first, second]) await run.end()
})

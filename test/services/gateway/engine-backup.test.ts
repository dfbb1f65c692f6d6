import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { cpSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { postgres, postgresProgram } from '../../src/state/servers.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { until } from '../../support/waiting.js'
import { newDatabase } from '../engine.js'
import { connectTo, start } from './client.js'

// docs/backup.md: the tables first, by the tools of PostgreSQL, and then the bodies.

const body = () => randomBytes(40_000)

t.test('a backup of PostgreSQL, and of the folder after it', { skip: postgres.skip }, async (t) => {
  const [database, data, saved] = [await newDatabase(), temporaryFolder(t), temporaryFolder(t)]
  const [removed, changed] = [body(), body()]
  const services = await start(data, { database })
  const client = await connectTo(services)
  await client.call('MakeBucket', { bucketName: 'bucket' })
  await client.put('bucket', 'removed', removed)
  await client.put('bucket', 'changed', changed)
  const dump = join(saved, 'tables')
  execFileSync(postgresProgram('pg_dump'), ['--format=custom', `--file=${dump}`, database])
  await client.call('RemoveObject', { bucketName: 'bucket', objects: ['removed'] })
  await client.put('bucket', 'changed', body())
  await client.put('bucket', 'added', body())
  const copy = join(saved, 'copy')
  cpSync(data, copy, { recursive: true })
  await services.stop()

  const empty = await newDatabase()
  execFileSync(postgresProgram('pg_restore'), [`--dbname=${empty}`, dump])
  // A day otherwise, and once a day.
  const limits = { orphanMs: 0, orphanPauseMs: 500 }
  const restored = await start(copy, { database: empty, limits })
  t.teardown(() => restored.stop())
  const reader = await connectTo(restored)
  t.same(await reader.names('bucket'), ['changed', 'removed'])
  t.ok((await reader.get('bucket', 'changed')).body.equals(changed))
  t.ok((await reader.get('bucket', 'removed')).body.equals(removed), 'its body stays for an hour')
  const files = () =>
    readdirSync(join(copy, 'gateway', 'objects'), { recursive: true, encoding: 'utf8' }).filter(
      (name) => name.length > 32,
    )
  await until('what came after the backup is swept', async () => files().length === 2)
})

import { randomBytes } from 'node:crypto'
import pg from 'pg'
import root from 'tap'
import { postgres } from '../src/state/servers.js'

/** True when the suites of the services run on PostgreSQL: with DEALGATE_ENGINE=postgres. */
export const onPostgres = process.env.DEALGATE_ENGINE === 'postgres'

let server: Promise<string> | undefined

/** URL of an empty PostgreSQL database, or undefined when the suite runs on SQLite. */
export async function emptyDatabase(): Promise<string | undefined> {
  return onPostgres ? newDatabase() : undefined
}

/** URL of an empty PostgreSQL database, which must be installed. One server for the test file. */
export async function newDatabase(): Promise<string> {
  server ??= postgres.start(['-c', 'fsync=off', '-c', 'max_connections=400']).then(({ url, stop }) => {
    root.teardown(stop)
    return url
  })
  const url = await server
  const name = `test_${randomBytes(8).toString('hex')}`
  const client = new pg.Client(url)
  await client.connect()
  await client.query(`CREATE DATABASE ${name} STRATEGY file_copy`)
  await client.end()
  return url.replace(/\/postgres$/, `/${name}`)
}

const databases = new Map<string, Promise<string | undefined>>()

/** As `emptyDatabase`, the same one each time that something is started over a folder. */
export function databaseOf(folder: string): Promise<string | undefined> {
  const known = databases.get(folder) ?? emptyDatabase()
  databases.set(folder, known)
  return known
}

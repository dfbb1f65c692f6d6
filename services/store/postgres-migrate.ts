import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { COPYING, CREATE_COPYING, incompleteError, type Schema } from './database.js'
import { asking } from './postgres-errors.js'
import { CONNECT_MS, schemaOf } from './postgres-pools.js'
import { FUNCTIONS, inPostgres, LEASES } from './postgres-sql.js'

type Query = (text: string, values?: unknown[]) => Promise<pg.QueryResult>

/**
 * Makes a schema, or brings it up to date, in one transaction: lock, make, take the steps that are missing. Resolves
 * with its id. Processes that start at the same time take turns. A failure leaves the version before. Throws
 * RangeError for a schema of a later version, and for one that a copy has not completed.
 */
export async function migrate(url: string, schema: Schema<unknown>): Promise<string> {
  const name = schemaOf(schema)
  // No limit of time: an index of a large table takes as long as it takes.
  const options = `-c search_path=${name}`
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: CONNECT_MS, options })
  client.on('error', () => {})
  const query: Query = (text, values) => asking(() => client.query(text, values))
  try {
    await asking(() => client.connect())
    await query('BEGIN')
    await query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [name])
    const id = await makeSchema(query, schema)
    await takeSteps(query, schema)
    await query('COMMIT')
    return id
  } finally {
    // Rolls back what has not been committed.
    await client.end().catch(() => {})
  }
}

/** Makes what every schema has besides its tables: version, functions, leases, identity. Resolves with its id. */
async function makeSchema(query: Query, schema: Schema<unknown>): Promise<string> {
  await query(`CREATE SCHEMA IF NOT EXISTS ${schemaOf(schema)}`)
  await query('CREATE TABLE IF NOT EXISTS schema_version (version bigint NOT NULL)')
  if (!schema.filling && (await query('SELECT to_regclass($1) AS found', [COPYING])).rows[0].found !== null) {
    throw incompleteError(schema)
  }
  await query(FUNCTIONS)
  await query(LEASES)
  await query('CREATE TABLE IF NOT EXISTS identity (id text NOT NULL)')
  await query('INSERT INTO identity (id) SELECT $1 WHERE NOT EXISTS (SELECT 1 FROM identity)', [randomUUID()])
  return (await query('SELECT id FROM identity')).rows[0].id
}

/** Takes the steps that the schema has not taken yet. */
async function takeSteps(query: Query, { steps, owner, filling }: Schema<unknown>): Promise<void> {
  const { rows } = await query('SELECT version FROM schema_version')
  const isNew = rows.length === 0
  const version = Number(rows[0]?.version ?? 0)
  if (version > steps.length) {
    throw new RangeError(`A later version of dealgate has written the data of ${owner}: start that version.`)
  }
  for (const step of steps.slice(version)) await query(inPostgres(step))
  // This precedes the commit, by which others see the schema: a service must not start with what the copy will fill.
  if (filling && isNew) await query(CREATE_COPYING)
  const change = isNew ? 'INSERT INTO schema_version VALUES ($1)' : 'UPDATE schema_version SET version = $1'
  await query(change, [steps.length])
}

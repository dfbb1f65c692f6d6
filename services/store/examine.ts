import pg from 'pg'
import type { Schema } from './database.js'
import { asking } from './postgres-errors.js'
import { CONNECT_MS, schemaOf } from './postgres-pools.js'
import { readSqlite } from './sqlite.js'

/** Least version of PostgreSQL, as it numbers them. */
const MIN_VERSION = 140_000

/** Difference of clocks from which times in documents are confusing, ms. */
const MAX_SKEW_MS = 5_000

/** Encodings that take every text. */
const ENCODINGS: readonly string[] = ['UTF8', 'SQL_ASCII']

const FACTS = `
  SELECT current_setting('server_version_num')::int AS number, current_setting('server_version') AS version,
    current_setting('server_encoding') AS encoding, pg_is_in_recovery() AS recovering,
    has_database_privilege(current_database(), 'CREATE') AS creates, current_user AS role,
    extract(epoch FROM clock_timestamp())::float8 * 1000 AS time,
    (SELECT array_agg(name) FROM unnest($1::text[]) AS name WHERE to_regnamespace(name) IS NULL) AS missing,
    (SELECT array_agg(name) FROM unnest($1::text[]) AS name
      WHERE to_regnamespace(name) IS NOT NULL AND NOT has_schema_privilege(name, 'CREATE, USAGE')) AS closed`

interface Facts {
  readonly number: number
  readonly version: string
  readonly encoding: string
  readonly recovering: boolean
  readonly creates: boolean
  readonly role: string
  readonly time: number
  readonly missing: readonly string[] | null
  readonly closed: readonly string[] | null
}

/** Gives warnings about the settings of a server. */
export type AdviceOf = (query: (sql: string) => Promise<unknown[]>) => Promise<readonly string[]>

export interface Examination {
  readonly text: string
  readonly warnings: readonly string[]
}

/**
 * Examines a PostgreSQL database for these schemas, and changes nothing. Throws RangeError for what a service cannot
 * work with, and DatabaseUnavailableError.
 * @param advise warnings about the settings of the server
 */
export async function examinePostgres(
  url: string,
  schemas: readonly Pick<Schema<unknown>, 'name'>[],
  advise: AdviceOf,
): Promise<Examination> {
  const client = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: CONNECT_MS,
    query_timeout: CONNECT_MS,
  })
  client.on('error', () => {})
  const query = (sql: string, values?: unknown[]) => asking(async () => (await client.query(sql, values)).rows)
  try {
    await asking(() => client.connect())
    const asked = Date.now()
    const [facts] = (await query(FACTS, [schemas.map(schemaOf)])) as [Facts]
    const skew = Math.round((asked + Date.now()) / 2 - facts.time)
    requireUsable(facts)
    const warnings = [...(await advise((sql) => query(sql)))]
    if (Math.abs(skew) > MAX_SKEW_MS)
      warnings.push(
        `This machine is ${Math.abs(skew / 1000).toFixed(0)} s ${skew > 0 ? 'ahead of' : 'behind'} PostgreSQL: set both clocks, with NTP if possible.`,
      )
    const { host, pathname } = new URL(url)
    const fresh = facts.missing?.length === schemas.length ? ', without tables of dealgate yet' : ''
    return { text: `postgres://${host}${pathname} is version ${facts.version}${fresh}`, warnings }
  } finally {
    await client.end().catch(() => {})
  }
}

function requireUsable({ number, version, encoding, recovering, creates, role, missing, closed }: Facts): void {
  if (number < MIN_VERSION) throw new RangeError(`PostgreSQL is version ${version}: version 14 or later is needed.`)
  if (!ENCODINGS.includes(encoding))
    throw new RangeError(`The database has the encoding ${encoding}: create one with ENCODING 'UTF8'.`)
  if (recovering) throw new RangeError('This PostgreSQL is a standby and takes no writes. Name the primary.')
  if (missing !== null && !creates)
    throw new RangeError(
      `The role ${role} may not create the schemas ${missing.join(', ')}: GRANT CREATE ON DATABASE … TO ${role}.`,
    )
  if (closed !== null)
    throw new RangeError(`The role ${role} may not use the schemas ${closed.join(', ')}, which another role owns.`)
}

/** Throws RangeError when the file of a service is damaged. Reads all of it. */
export async function examineSqlite(file: string): Promise<void> {
  const { connection, close } = readSqlite(file)
  try {
    const found = await connection.prepare('PRAGMA quick_check(1)').get<{ quick_check: string }>()
    if (found?.quick_check !== 'ok') throw new RangeError(`${file} is damaged: ${found?.quick_check}`)
  } finally {
    close()
  }
}

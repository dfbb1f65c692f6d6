/** Replication lag of a standby that causes a warning, seconds. */
const LAG_SECONDS = 10

/** `dealgate_lease_wait` is UNLOGGED by design: it holds the waiters of this moment. */
const SETTINGS = `
  SELECT current_setting('synchronous_commit') AS commit, current_setting('fsync') AS fsync,
    current_setting('full_page_writes') AS pages, current_setting('synchronous_standby_names') AS standbys,
    pg_is_in_recovery() AS recovering,
    (SELECT count(*) FROM pg_class WHERE relname LIKE 'dealgate\\_%' AND relname <> 'dealgate_lease_wait' AND relkind = 'r'
      AND relpersistence = 'u')::int AS unlogged`

/** The lag is null for accounts that may not see it (https://www.postgresql.org/docs/current/monitoring-stats.html). */
const STANDBYS = `
  SELECT count(*)::int AS count, coalesce(max(extract(epoch FROM replay_lag)), 0)::float8 AS lag FROM pg_stat_replication`

interface Settings {
  readonly commit: string
  readonly fsync: string
  readonly pages: string
  readonly standbys: string
  readonly recovering: boolean
  readonly unlogged: number
}

interface Standbys {
  readonly count: number
  /** Lag of the slowest standby, seconds. */
  readonly lag: number
}

/**
 * Warnings about PostgreSQL settings that may lose acknowledged records
 * (https://www.postgresql.org/docs/current/runtime-config-wal.html).
 */
export async function postgresAdvice(query: (sql: string) => Promise<unknown[]>): Promise<string[]> {
  const [settings] = (await query(SETTINGS)) as Settings[]
  const [standbys] = (await query(STANDBYS)) as Standbys[]
  return settings && standbys ? [...settingsAdvice(settings), ...standbyAdvice(settings, standbys)] : []
}

function settingsAdvice({ commit, fsync, pages, recovering, unlogged }: Settings): string[] {
  const advice: string[] = []
  if (commit === 'off') {
    advice.push(
      'PostgreSQL has `synchronous_commit = off`: a crash loses what was acknowledged last. Set it to `on` for the role that dealgate logs in as.',
    )
  }
  if (fsync === 'off' || pages === 'off') {
    advice.push(
      'PostgreSQL has `fsync` or `full_page_writes` off: a power cut may destroy the database. Set both to `on`.',
    )
  }
  if (recovering) advice.push('This PostgreSQL is a standby and takes no writes. Name the primary in --state.')
  if (unlogged > 0) {
    advice.push(
      `${unlogged} tables of dealgate are UNLOGGED: a crash empties them. Change each with ALTER TABLE … SET LOGGED.`,
    )
  }
  return advice
}

function standbyAdvice({ commit, standbys }: Settings, { count, lag }: Standbys): string[] {
  const advice: string[] = []
  if (count > 0 && (standbys === '' || commit === 'local' || commit === 'off')) {
    advice.push(
      'PostgreSQL has asynchronous standbys: a failover to one loses what was acknowledged last. Name one in `synchronous_standby_names`.',
    )
  }
  if (lag > LAG_SECONDS) advice.push(`A standby of PostgreSQL is ${Math.round(lag)} seconds behind: repair it.`)
  return advice
}

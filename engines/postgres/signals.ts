import type { Socket } from 'node:net'
import pg from 'pg'
import { CHANNEL } from '../../src/state/signals.js'
import type { SignalEngine } from '../lasting-signals.js'

/** A name of SQL. */
export const POSTGRES_CHANNEL = CHANNEL.replaceAll('-', '_')

interface PostgresSignalsOptions {
  readonly url: string
  readonly stream: () => Socket
  /** Longest wait for an answer, ms. An idle connection is tested twice as often. */
  readonly timeoutMs: number
  /** Runs a query on another connection. */
  readonly query: (sql: string, values: readonly string[]) => Promise<unknown>
}

/** Signals by LISTEN and NOTIFY (https://www.postgresql.org/docs/current/sql-notify.html). */
export function postgresSignals({ url, stream, timeoutMs, query }: PostgresSignalsOptions): SignalEngine {
  return {
    publish: (message) => query('SELECT pg_notify($1, $2)', [POSTGRES_CHANNEL, message]),
    async listen(heard, lost) {
      const client = new pg.Client({
        connectionString: url,
        stream,
        connectionTimeoutMillis: timeoutMs,
        query_timeout: timeoutMs,
      })
      let test: NodeJS.Timeout | undefined
      const close = () => {
        clearInterval(test)
        client.end().catch(() => {})
      }
      client.on('error', lost)
      client.on('end', () => lost())
      client.on('notification', ({ payload = '' }) => heard(payload))
      try {
        await client.connect()
        await client.query(`LISTEN ${POSTGRES_CHANNEL}`)
      } catch (error) {
        close()
        throw error
      }
      test = setInterval(() => client.query('SELECT 1').catch(lost), timeoutMs / 2).unref()
      return { close }
    },
  }
}

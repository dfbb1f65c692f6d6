import type { Socket } from 'node:net'
import pg from 'pg'
import type { Logger } from '../../../common/log.js'
import type { OpenedSignals } from '../redis/signals.js'
import { CHANNEL, SignalBoard } from '../signals.js'

/** A name of SQL. */
export const POSTGRES_CHANNEL = CHANNEL.replaceAll('-', '_')

const FIRST_PAUSE_MS = 100
const MAX_PAUSE_MS = 2000

interface PostgresSignalsOptions {
  readonly url: string
  readonly log: Logger
  readonly stream: () => Socket
  /** Longest wait for an answer, ms. An idle connection is tested twice as often. */
  readonly timeoutMs: number
  /** Runs a query on another connection. */
  readonly query: (sql: string, values: readonly string[]) => Promise<unknown>
}

/**
 * Signals by LISTEN and NOTIFY (https://www.postgresql.org/docs/current/sql-notify.html), on a connection of their own,
 * which is made anew when it is lost.
 */
export function openPostgresSignals({ url, log, stream, timeoutMs, query }: PostgresSignalsOptions): OpenedSignals {
  let closed = false
  let client: pg.Client | undefined
  let next: NodeJS.Timeout | undefined
  let pause = FIRST_PAUSE_MS
  const board = new SignalBoard((message) => {
    query('SELECT pg_notify($1, $2)', [POSTGRES_CHANNEL, message]).catch((err: unknown) =>
      log.debug({ err }, 'could not send a signal'),
    )
  })

  async function listen(): Promise<void> {
    const mine = new pg.Client({
      connectionString: url,
      stream,
      connectionTimeoutMillis: timeoutMs,
      query_timeout: timeoutMs,
    })
    client = mine
    let lost = false
    let test: NodeJS.Timeout | undefined
    const lose = (err?: unknown) => {
      if (lost) return
      lost = true
      clearInterval(test)
      mine.end().catch(() => {})
      if (closed) return
      log.debug({ err }, 'the connection for signals failed')
      next = setTimeout(listen, pause).unref()
      pause = Math.min(pause * 2, MAX_PAUSE_MS)
    }
    mine.on('error', lose)
    mine.on('end', () => lose())
    mine.on('notification', ({ payload = '' }) => board.receive(payload))
    try {
      await mine.connect()
      await mine.query(`LISTEN ${POSTGRES_CHANNEL}`)
      pause = FIRST_PAUSE_MS
      test = setInterval(() => mine.query('SELECT 1').catch(lose), timeoutMs / 2).unref()
      board.missed()
    } catch (error) {
      lose(error)
    }
  }

  void listen()
  return {
    signals: board,
    close() {
      closed = true
      clearTimeout(next)
      client?.end().catch(() => {})
    },
  }
}

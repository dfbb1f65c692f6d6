import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { DataInUseError } from '../folder-lock.js'
import type { ServicesLog } from '../log.js'
import { DatabaseUnavailableError, LeaseLostError, type Schema } from './database.js'
import { type Guard, HOLDER } from './lease.js'

/** Time for which a start waits for a process that is just ending, ms. */
const PATIENCE_MS = 1000

/** Interval between attempts to get a claim back, and longest wait for an answer to one, ms. */
const RETRY_MS = 1000
const ANSWER_MS = 5000

/** Longest time for which a stopped process keeps the row of the claim: IDLE_MS and STATEMENT_MS of postgres.ts. */
export const MAX_TAKEOVER_MS = 35_000

/** Interval of questions that show that the connection lives, and time that its end takes at most, ms. */
export const HEARTBEAT_MS = 10_000
const END_MS = 1000

/** Name of the claim among the leases of a schema. */
const NAME = 'everything'

/** The server ends the session of a machine that is gone; one without work does not end otherwise. */
export const SESSION = [
  'idle_session_timeout=0',
  'tcp_keepalives_idle=10',
  'tcp_keepalives_interval=5',
  'tcp_keepalives_count=3',
]

/** https://www.postgresql.org/docs/current/errcodes-appendix.html: lock_not_available. */
const NOT_AVAILABLE = '55P03'

/**
 * The claim of one process to the whole schema of a service that does not bear several. An advisory lock that lasts as
 * long as its connection keeps others from starting. Each transaction of the process checks the token of the claim,
 * which the next process raises: it changes nothing after that, even if it was stopped when it lost the lock.
 */
export class PostgresClaim implements Guard {
  readonly #url: string
  readonly #name: string
  readonly #owner: string
  readonly #log: ServicesLog
  #client: pg.Client | undefined
  #heartbeat: NodeJS.Timeout | undefined
  #token = 0
  #state: 'held' | 'lost' | 'overtaken' = 'lost'
  #closed = false

  private constructor(url: string, name: string, owner: string, log: ServicesLog) {
    this.#url = url
    this.#name = name
    this.#owner = owner
    this.#log = log
  }

  /** Takes the lock of a schema, which may not exist yet. Throws DataInUseError, and what the driver does. */
  static async take(url: string, name: string, { owner }: Pick<Schema<unknown>, 'owner'>, log: ServicesLog) {
    const claim = new PostgresClaim(url, name, owner, log)
    if (await claim.#lock()) return claim
    throw new DataInUseError(
      `The data of ${owner} in the PostgreSQL database are in use by another running process. Stop that one or choose another database.`,
    )
  }

  /** Ends what an earlier process may still do. Call it once, before the data are read. */
  async begin(): Promise<void> {
    const { rows } = await this.#ask(
      `INSERT INTO lease AS held (name, token, holder, expires) VALUES ($1, 1, $2, 'infinity')
       ON CONFLICT (name) DO UPDATE SET token = held.token + 1, holder = excluded.holder RETURNING token`,
      [NAME, HOLDER],
      MAX_TAKEOVER_MS,
    )
    this.#token = Number(rows[0]?.token)
    this.#state = 'held'
  }

  get check(): string {
    return `SELECT 1 FROM lease WHERE name = '${NAME}' AND token = ${this.#token} FOR KEY SHARE`
  }

  /** Throws DatabaseUnavailableError unless the process has its claim, as far as it knows. */
  require(): void {
    if (this.#state !== 'held') throw this.#unavailable()
  }

  /** Another process has begun, and what this one knows is out of date. */
  lost(): Error {
    if (this.#state !== 'overtaken') {
      this.#state = 'overtaken'
      this.#log.error({}, `Another process has taken over the data of ${this.#owner}. This one must be started again.`)
    }
    return this.#unavailable()
  }

  #unavailable(): Error {
    if (this.#state === 'overtaken')
      return new LeaseLostError('PostgreSQL: another process has taken over the data of this one.')
    return new DatabaseUnavailableError(
      'PostgreSQL: the connection is lost by which this process has its data for itself.',
    )
  }

  async close(): Promise<void> {
    this.#closed = true
    await this.#end()
  }

  async #end(): Promise<void> {
    const client = this.#client
    if (client === undefined) return
    // A host that is gone does not answer.
    const timer = setTimeout(() => client.connection.stream.destroy(), END_MS)
    await client.end().catch(() => {})
    clearTimeout(timer)
  }

  async #ask(text: string, values: unknown[], maxWaitMs = ANSWER_MS): Promise<pg.QueryResult> {
    if (this.#client === undefined) throw new DatabaseUnavailableError('PostgreSQL: the connection is lost.')
    // https://github.com/brianc/node-postgres/blob/master/packages/pg/lib/client.js: the types do not know it.
    const asked: pg.QueryConfig & { readonly query_timeout: number } = { text, values, query_timeout: maxWaitMs }
    return this.#client.query(asked)
  }

  /** Resolves with false when another process has the lock. */
  async #lock(): Promise<boolean> {
    const client = new pg.Client({
      connectionString: this.#url,
      connectionTimeoutMillis: ANSWER_MS,
      query_timeout: ANSWER_MS,
      options: [`search_path=${this.#name}`, `lock_timeout=${PATIENCE_MS}`, ...SESSION]
        .map((one) => `-c ${one}`)
        .join(' '),
    })
    client.on('error', () => {})
    try {
      await client.connect()
      await client.query('SELECT pg_advisory_lock(hashtextextended($1, 0))', [`${this.#name} ${NAME}`])
      await client.query('SET lock_timeout = 0')
    } catch (error) {
      await client.end().catch(() => {})
      if ((error as { code?: unknown }).code === NOT_AVAILABLE) return false
      throw error
    }
    this.#client = client
    // A host that is gone ends no connection.
    this.#heartbeat = setInterval(() => this.#ask('SELECT 1', []).catch(() => this.#end()), HEARTBEAT_MS).unref()
    client.once('end', () => void this.#regain())
    return true
  }

  async #regain(): Promise<void> {
    this.#client = undefined
    clearInterval(this.#heartbeat)
    if (this.#closed || this.#state === 'overtaken') return
    this.#state = 'lost'
    this.#log.warn({}, `The connection is lost by which this process has the data of ${this.#owner} for itself.`)
    while (!this.#closed) {
      await sleep(RETRY_MS, undefined, { ref: false })
      if (!(await this.#lock().catch(() => false))) continue
      const isOurs = await this.#ask(this.check, []).then(
        ({ rows }) => rows.length === 1,
        () => undefined,
      )
      if (isOurs === true) this.#state = 'held'
      if (isOurs === false) this.lost()
      // The end of a connection that does not answer begins this again.
      if (isOurs !== true || this.#closed) await this.#end()
      return
    }
  }
}

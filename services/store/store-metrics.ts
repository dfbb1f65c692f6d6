import type { Count, Counter, Histogram, Metrics, Sample } from '../../common/metrics.js'
import type { BodyError } from './bodies.js'
import { DatabaseUnavailableError } from './database.js'

/** Connections to PostgreSQL. */
interface PoolUse {
  readonly busy: number
  readonly free: number
  /** Statements and transactions that wait for a connection. */
  readonly waiting: number
}

/** Takes what happens to the database of one service. */
export interface DatabaseWatch {
  pool(read: () => PoolUse): void
  transaction(seconds: number): void
  statement(seconds: number): void
  /** A transaction runs again, because another one came between. */
  retried(): void
  /** A statement or a transaction has failed because the database cannot be used. */
  unavailable(): void
}

export type BodyRequestOutcome = 'ok' | 'refused' | 'failed'

/** Takes what happens to the S3 store of bodies. */
export interface BodyStoreWatch {
  /** @param seconds until the head of the answer */
  request(method: string, outcome: BodyRequestOutcome, seconds: number): void
  bytes(direction: 'sent' | 'received', count: number): void
}

/** The metrics of the engines under the services. */
export class StoreMetrics {
  readonly bodies: BodyStoreWatch
  readonly #pools = new Map<string, () => PoolUse>()
  readonly #transactions: Histogram
  readonly #statements: Histogram
  readonly #retries: Counter
  readonly #unavailable: Counter
  readonly #swept: Count
  readonly #damaged: Counter
  /** Errors that were counted: some pass several places. */
  readonly #counted = new WeakSet<BodyError>()

  constructor(metrics: Metrics) {
    const labels = ['service']
    metrics.gauge({
      name: 'dealgate_database_connections',
      help: 'Connections of a service to PostgreSQL: `busy` and `free` ones, and work that is `waiting` for one.',
      read: () =>
        [...this.#pools].flatMap(([service, read]) =>
          Object.entries(read()).map(([state, value]): Sample => ({ labels: { service, state }, value })),
        ),
    })
    this.#transactions = metrics.histogram({
      name: 'dealgate_database_transaction_duration_seconds',
      help: 'Time of transactions in PostgreSQL, with their repetitions and the wait for a connection.',
      labels,
    })
    this.#statements = metrics.histogram({
      name: 'dealgate_database_statement_duration_seconds',
      help: 'Time of statements in PostgreSQL outside of transactions, with the wait for a connection.',
      labels,
    })
    this.#retries = metrics.counter({
      name: 'dealgate_database_retries_total',
      help: 'Repetitions of transactions because another one came between.',
      labels,
    })
    this.#unavailable = metrics.counter({
      name: 'dealgate_database_unavailable_total',
      help: 'Statements and transactions that failed because PostgreSQL could not be used.',
      labels,
    })
    this.#swept = metrics
      .counter({ name: 'dealgate_bodies_swept_total', help: 'Bodies without a row that were removed.' })
      .of()
    this.#damaged = metrics.counter({
      name: 'dealgate_damaged_bodies_total',
      help: 'Reads of objects that found their bytes `changed` or `lost`. Nothing that has changed was sent.',
      labels: ['damage'],
    })
    for (const damage of ['changed', 'lost']) this.#damaged.of(damage)
    this.bodies = bodyStoreWatch(metrics)
  }

  /** Counts an error of a body once, if it says that bytes are lost or have changed. */
  damaged(error: BodyError): void {
    if ((error.kind !== 'changed' && error.kind !== 'lost') || this.#counted.has(error)) return
    this.#counted.add(error)
    this.#damaged.of(error.kind).value++
  }

  swept(count: number): void {
    this.#swept.value += count
  }

  database(service: string): DatabaseWatch {
    const [transactions, statements] = [this.#transactions.of(service), this.#statements.of(service)]
    const [retries, unavailable] = [this.#retries.of(service), this.#unavailable.of(service)]
    return {
      pool: (read) => void this.#pools.set(service, read),
      transaction: (seconds) => transactions.observe(seconds),
      statement: (seconds) => statements.observe(seconds),
      retried: () => void retries.value++,
      unavailable: () => void unavailable.value++,
    }
  }
}

function bodyStoreWatch(metrics: Metrics): BodyStoreWatch {
  const requests = metrics.counter({
    name: 'dealgate_body_store_requests_total',
    help: 'Requests to the S3 store of bodies, by method and outcome: `ok`, `refused` (4xx) or `failed`.',
    labels: ['method', 'outcome'],
  })
  const seconds = metrics.histogram({
    name: 'dealgate_body_store_request_duration_seconds',
    help: 'Time until the S3 store of bodies answered with a head.',
    labels: ['method'],
  })
  const bytes = metrics.counter({
    name: 'dealgate_body_store_bytes_total',
    help: 'Bytes `sent` to the S3 store of bodies and `received` from it.',
    labels: ['direction'],
  })
  const directions = { sent: bytes.of('sent'), received: bytes.of('received') }
  return {
    request(method, outcome, duration) {
      requests.of(method, outcome).value++
      seconds.of(method).observe(duration)
    },
    bytes(direction, count) {
      directions[direction].value += count
    },
  }
}

/** Measures work on a database, where it is watched. */
export async function watched<R>(
  work: () => Promise<R>,
  watch: DatabaseWatch | undefined,
  kind: 'transaction' | 'statement',
): Promise<R> {
  if (watch === undefined) return work()
  const began = performance.now()
  try {
    return await work()
  } catch (error) {
    if (error instanceof DatabaseUnavailableError) watch.unavailable()
    throw error
  } finally {
    watch[kind]((performance.now() - began) / 1000)
  }
}

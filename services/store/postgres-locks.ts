import { createHash } from 'node:crypto'
import { type AbortableLimit, abortableLimit } from '../failure-counts.js'
import { DatabaseUnavailableError, type TransactionOptions } from './database.js'

/** A lock of a transaction, by its number in PostgreSQL: 64 bits. Names that share one wait without need. */
interface Lock {
  readonly number: bigint
  readonly kind: keyof typeof MAX_CONCURRENCY
}

/**
 * Most transactions of this process that wait for one lock with a connection each. Fewer than there are connections: a
 * lock whose holder stands still must leave some to those that do not want it.
 */
const MAX_CONCURRENCY = { alone: 2, shared: 4 }

/** @param schema of the database, where another one has other locks */
export function locksOf(schema: string, { locks = [], shares = [] }: TransactionOptions): readonly Lock[] {
  const lock = (name: string, kind: Lock['kind']): Lock => ({
    number: createHash('sha256').update(`${schema} ${name}`).digest().readBigInt64BE(),
    kind,
  })
  const all = [...locks.map((name) => lock(name, 'alone')), ...shares.map((name) => lock(name, 'shared'))]
  // All transactions take them in one order, or some would wait for one another.
  return all.sort((one, other) => (one.number < other.number ? -1 : 1))
}

export function statementOf({ number, kind }: Lock): string {
  return `SELECT pg_advisory_xact_lock${kind === 'shared' ? '_shared' : ''}(${number})`
}

/** Where transactions of this process wait before they take a connection. */
export class LockQueues {
  readonly #maxWaitMs: number
  readonly #queues = new Map<string, { readonly limit: AbortableLimit; users: number }>()

  /** @param maxWaitMs longest wait */
  constructor(maxWaitMs: number) {
    this.#maxWaitMs = maxWaitMs
  }

  /**
   * Resolves when the transaction may wait for these locks, with what to call when it has them, or does not want them
   * any more. Throws DatabaseUnavailableError.
   */
  async enter(locks: readonly Lock[]): Promise<() => void> {
    const signal = AbortSignal.timeout(this.#maxWaitMs)
    const entered: (() => void)[] = []
    const leave = () => {
      for (const end of entered) end()
    }
    try {
      for (const lock of locks) entered.push(await this.#turn(lock, signal))
      return leave
    } catch (cause) {
      leave()
      throw new DatabaseUnavailableError('PostgreSQL: others hold what the transaction needs for too long.', { cause })
    }
  }

  #turn({ number, kind }: Lock, signal: AbortSignal): Promise<() => void> {
    const name = `${kind} ${number}`
    const queue = this.#queues.get(name) ?? { limit: abortableLimit(MAX_CONCURRENCY[kind]), users: 0 }
    this.#queues.set(name, queue)
    queue.users++
    return new Promise((enter, refuse) => {
      queue
        .limit(() => new Promise<void>((leave) => enter(leave)), signal)
        .catch(refuse)
        .finally(() => {
          queue.users--
          if (queue.users === 0) this.#queues.delete(name)
        })
    })
  }
}

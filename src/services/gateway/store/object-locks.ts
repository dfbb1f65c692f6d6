import { type Connection, statements } from '../../store/database.js'
import { GatewayError } from '../errors.js'

/** What keeps a version from being removed, as its row says it. */
export interface LockRow {
  readonly mode: string | null
  /** End of the retention, ms since 1970. */
  readonly ends: number | null
  readonly hold: number
}

/** The table of locks, by the generation of the version. Call writing methods inside a transaction. */
export class ObjectLocks {
  readonly #sql

  constructor(connection: Connection) {
    this.#sql = statements(connection, {
      find: 'SELECT mode, ends, hold FROM object_locks WHERE generation = ?',
      remove: 'DELETE FROM object_locks WHERE generation = ?',
    })
  }

  find(generation: string): Promise<LockRow | undefined> {
    return this.#sql.find.get<LockRow>(generation)
  }

  async remove(generation: string): Promise<void> {
    await this.#sql.remove.run(generation)
  }
}

/**
 * Throws GatewayError ObjectLocked when the version of this generation must not be removed now. A row that says
 * something else than a lock of today locks for ever.
 * @param bypass a retention in GOVERNANCE mode does not count
 */
export async function mustBeFree(
  { locks }: { readonly locks: ObjectLocks },
  generation: string,
  bypass: boolean,
): Promise<void> {
  const lock = await locks.find(generation)
  if (lock !== undefined && isLocked(lock, bypass)) throw new GatewayError('ObjectLocked')
}

function isLocked({ mode, ends, hold }: LockRow, bypass: boolean): boolean {
  if (hold !== 0) return true
  if (mode === null && ends === null) return false
  if (mode === null || !Number.isSafeInteger(ends)) return true
  if (mode === 'GOVERNANCE' && bypass) return false
  return (mode !== 'GOVERNANCE' && mode !== 'COMPLIANCE') || Number(ends) > Date.now()
}

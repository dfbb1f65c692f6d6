import { nameFailure } from '../../common/address-failure.js'
import { DatabaseUnavailableError, UnknownCommitError } from './database.js'

/** https://www.postgresql.org/docs/current/errcodes-appendix.html */
export const CONFLICTS: readonly unknown[] = ['40001', '40P01']

/**
 * Classes of connection failures, of too few resources, of interventions such as a shutdown, and codes of a transaction
 * that a standby refuses or that was idle for too long.
 */
const UNAVAILABLE = /^(08|53|57|25006|25P03)/

/** The code of a statement in a transaction of which another has failed. */
export const IN_FAILED = '25P02'

/** @param always true where every error but a conflict means that the database cannot be used now */
export async function asking<T>(ask: () => Promise<T>, always = false): Promise<T> {
  try {
    return await ask()
  } catch (error) {
    if (error instanceof DatabaseUnavailableError) throw error
    throw isOfConnection(error) || (always && !CONFLICTS.includes(codeOf(error))) ? unavailable(error) : error
  }
}

export function codeOf(error: unknown): unknown {
  return (error as { code?: unknown } | undefined)?.code
}

/** Errors of a connection have no code of PostgreSQL: those of the system, or a message of the driver. */
function isOfConnection(error: unknown): boolean {
  const code = codeOf(error)
  if (typeof code === 'string') return UNAVAILABLE.test(code) || /^E[A-Z_]+$/.test(code)
  return error instanceof Error && /connect|timeout|calling end|not queryable/i.test(error.message)
}

/** Throws the error of a COMMIT. */
export function asUnknown(error: unknown): never {
  throw error instanceof DatabaseUnavailableError ? new UnknownCommitError(error.message, { cause: error }) : error
}

function unavailable(error: unknown): DatabaseUnavailableError {
  const reason = nameFailure(error) ?? (error instanceof Error ? error.message : String(error))
  return new DatabaseUnavailableError(`PostgreSQL (--database): ${reason}`, { cause: error })
}

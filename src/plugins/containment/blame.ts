import { inspect } from 'node:util'
import { S3Error } from '../../common/errors/s3-error.js'

/**
 * Converts an error of a plugin: an S3Error is its answer; any other error becomes an InternalError whose cause, for
 * the log, names the plugin and the work.
 */
export function blame(thrown: unknown, plugin: string, work: string): S3Error {
  if (thrown instanceof S3Error) return thrown
  const why = thrown instanceof Error ? '' : `: ${messageOf(thrown)}`
  const cause = new Error(`${work} of the plugin "${plugin}" failed${why}`, { cause: thrown })
  return new S3Error('InternalError', { cause })
}

/** Returns a message of one line for any thrown value. */
export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : inspect(thrown, { depth: 0, breakLength: Number.POSITIVE_INFINITY })
}

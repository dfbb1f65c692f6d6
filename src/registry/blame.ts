import { inspect } from 'node:util'
import { S3Error } from '../errors/s3-error.js'

/** What a plugin threw in this work of its: an S3Error is its answer, all else is an InternalError whose cause, for the log, names both. */
export function blame(thrown: unknown, plugin: string, work: string): S3Error {
  if (thrown instanceof S3Error) return thrown
  const why = thrown instanceof Error ? '' : `: ${messageOf(thrown)}`
  const cause = new Error(`${work} of the plugin "${plugin}" failed${why}`, { cause: thrown })
  return new S3Error('InternalError', { cause })
}

/** One line, for what may be anything but an Error, too. */
export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : inspect(thrown, { depth: 0, breakLength: Number.POSITIVE_INFINITY })
}

import { S3Error } from '../common/errors/s3-error.js'
import { ConfigError } from './config/config.js'

export const EXIT_FAILURE = 1
export const EXIT_BAD_OPTIONS = 2

/** A failure that the user can resolve. Its message is shown without a stack. */
export class Failure extends Error {
  override readonly name = 'Failure'
}

export function exitCodeOf(error: unknown): number {
  return error instanceof ConfigError ? EXIT_BAD_OPTIONS : EXIT_FAILURE
}

/** Describes an error that ends the program in one line. */
export function describeError(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  // Its message is for clients of a server, and refers them to the server's log. A command has none.
  if (error instanceof S3Error && error.code === 'InternalError' && error.cause instanceof Error)
    return describeError(error.cause)
  // connect() to a name with several addresses fails with an AggregateError without a message.
  if (error instanceof AggregateError && error.message === '') return error.errors.map(describeError).join('; ')
  return error.message
}

/** Explains why an address cannot be listened on; `flags` names the options that change it. */
export function listenFailure(
  error: unknown,
  address: { host: string; port: number },
  flags: { host: string; port: string },
): unknown {
  const at = `${address.host}:${address.port}`
  switch ((error as NodeJS.ErrnoException).code) {
    case 'EADDRINUSE':
      return new Failure(
        `${at} is in use by another process. Choose another port with ${flags.port}, or 0 for a free one.`,
        { cause: error },
      )
    case 'EACCES':
      return new Failure(`Not permitted to listen on ${at}. Choose a port above 1023 with ${flags.port}.`, {
        cause: error,
      })
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return new Failure(`${address.host} is not an address of this machine. Choose another with ${flags.host}.`, {
        cause: error,
      })
    default:
      return error
  }
}

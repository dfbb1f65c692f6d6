import { ConfigError } from '../config.js'

export const EXIT_FAILURE = 1
export const EXIT_BAD_OPTIONS = 2

/** Something went wrong that the user can do something about; the message is all he needs to see. */
export class Failure extends Error {
  override readonly name = 'Failure'
}

export function exitCodeOf(error: unknown): number {
  return error instanceof ConfigError ? EXIT_BAD_OPTIONS : EXIT_FAILURE
}

/** One clear line for an error that ends the program. */
export function describeError(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  // connect() to a name with several addresses fails with all their errors and no message of its own.
  if (error instanceof AggregateError && error.message === '') return error.errors.map(describeError).join('; ')
  return error.message
}

/** The words for an address that cannot be listened on; `flag` names the option that changes it. */
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
      return new Failure(`${address.host} is no address of this machine. Choose another with ${flags.host}.`, {
        cause: error,
      })
    default:
      return error
  }
}

import { S3Error } from '../errors/s3-error.js'

/**
 * Why the state could not be opened. `DATA_IN_USE`: another process, or this one, has the folder open; `DATA_FOLDER`: the folder cannot be used;
 * `STATE_URL`: the Keyv URL is of no kind we know; `STATE_UNREACHABLE`: the server it names does not answer or refuses us.
 */
export type StateErrorCode = 'DATA_IN_USE' | 'DATA_FOLDER' | 'STATE_URL' | 'STATE_UNREACHABLE'

/** Thrown by `openState` only; later failures are S3Errors, for they answer a request. */
export class StateError extends Error {
  override readonly name = 'StateError'
  readonly code: StateErrorCode

  constructor(code: StateErrorCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.code = code
  }
}

/** The words of an error; an AggregateError (a host with two addresses) has none of its own. */
export function reasonOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return error.errors.map(reasonOf).join('; ')
  if (error instanceof Error) return error.message || errorCode(error) || error.name
  return String(error)
}

/** The `code` of a system error, '' where there is none. */
export function errorCode(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return typeof code === 'string' ? code : ''
}

/** The store of records failed: the request may be repeated. */
export function recordsFailed(cause: unknown): S3Error {
  if (cause instanceof S3Error) return cause
  return new S3Error('ServiceUnavailable', {
    message: 'The server cannot read or write its own records at the moment. Try again later.',
    cause,
  })
}

/** Local staging failed: a full disk is told apart, for the operator has to act. */
export function stagingFailed(cause: unknown): S3Error {
  if (cause instanceof S3Error) return cause
  if (['ENOSPC', 'EDQUOT'].includes(errorCode(cause))) {
    return new S3Error('ServiceUnavailable', {
      message: 'The server has no room left on its disk for parts of uploads. Try again later.',
      cause,
    })
  }
  return new S3Error('InternalError', { message: 'The server cannot keep or read the bytes of an upload.', cause })
}

export function noSuchUpload(cause?: unknown): S3Error {
  return new S3Error('NoSuchUpload', cause === undefined ? {} : { cause })
}

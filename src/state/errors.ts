import { nameFailure } from '../../common/address-failure.js'
import { ReportedAlready, S3Error } from '../../common/errors/s3-error.js'
import { systemError } from '../../common/errors/system-errors.js'
import { openingFailure } from '../../common/opening-failure.js'

/**
 * Why the state could not be opened. `DATA_IN_USE`: another process, or this one, has the folder open; `DATA_FOLDER`:
 * the folder is unusable; `STATE_URL`: the URL names no known kind of store; `STATE_UNREACHABLE`: the server does not
 * answer or refuses the connection.
 */
type StateErrorCode = 'DATA_IN_USE' | 'DATA_FOLDER' | 'STATE_URL' | 'STATE_UNREACHABLE'

/** Thrown by `openState` only. Later failures are S3Errors, because they answer a request. */
export class StateError extends Error {
  override readonly name = 'StateError'
  readonly code: StateErrorCode

  constructor(code: StateErrorCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.code = code
  }
}

/** For a file or folder that could not be created or opened. Names the remedy where it is known. */
export function cannotUse(path: string, error: unknown): StateError {
  if (error instanceof StateError) return error
  const message = openingFailure(path, error) ?? `${path} cannot be used: ${reasonOf(error)}`
  return new StateError('DATA_FOLDER', message, error)
}

/** The message of an error. An AggregateError (a host with two addresses) has none of its own. */
export function reasonOf(error: unknown): string {
  const unresolved = nameFailure(error)
  if (unresolved !== undefined) return `${unresolved}.`
  if (error instanceof AggregateError && error.errors.length > 0) return error.errors.map(reasonOf).join('; ')
  if (error instanceof Error) return error.message || errorCode(error) || error.name
  return String(error)
}

/** The `code` of a system error; '' when there is none. */
export function errorCode(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return typeof code === 'string' ? code : ''
}

/** The store of records failed. The request may be repeated. */
export function recordsFailed(cause: unknown): S3Error {
  if (cause instanceof S3Error) return cause
  return (
    systemError(cause, 'The store of records of the server') ??
    new S3Error('ServiceUnavailable', {
      message: 'The server cannot read or write its own records at the moment. Try again later.',
      cause,
    })
  )
}

/** The server ends, and work goes on that outlasts the end: it has no line in the log for each of its records. */
export function stateClosed(): S3Error {
  return new S3Error('ServiceUnavailable', {
    message: 'The server is shutting down.',
    cause: new ReportedAlready('The state database is closed'),
  })
}

/** Other proxies kept changing a record. The request may be repeated. */
export function changedTooOften(): S3Error {
  return new S3Error('ServiceUnavailable', {
    message: 'Other requests keep changing the same settings. Try again.',
    headers: { 'Retry-After': '1' },
  })
}

/** Another request, or another proxy, has held the lock for longer than this request may wait. */
export function busy(): S3Error {
  return new S3Error('SlowDown', {
    message: 'Another write to this key has not ended yet, or its outcome is not known yet. Try again.',
    headers: { 'retry-after': '2' },
  })
}

/** The lock may have passed to another proxy: nothing may be written under it any more. */
export function lockLost(cause?: unknown): S3Error {
  return new S3Error('ServiceUnavailable', {
    message: 'This server was cut off from the others for too long to go on with the write. Try again.',
    headers: { 'retry-after': '2' },
    cause,
  })
}

/** Local staging failed. */
export function stagingFailed(cause: unknown): S3Error {
  if (cause instanceof S3Error) return cause
  return (
    systemError(cause, 'The server, which keeps the parts of uploads,') ??
    new S3Error('InternalError', { message: 'The server cannot keep or read the bytes of an upload.', cause })
  )
}

/**
 * The error for a part of which some bytes are not where its record says. `found`: bytes that are there, if there are
 * any.
 */
export function partMissing({ partNumber, size }: { partNumber: number; size: number }, found?: number): S3Error {
  return new S3Error('InternalError', {
    message: 'The server has lost bytes of an upload. Send them again.',
    cause: new Error(`Part ${partNumber} says ${size} bytes; staged are ${found ?? 'none'}`),
  })
}

/**
 * Another server has staged the parts of the upload. Uses a status that clients repeat on a new connection: behind a
 * load balancer the repetition may reach that server, even if it is down for a moment. A client that gives up must not
 * be informed that its parts are lost, because they are not.
 */
export function stagedElsewhere(): S3Error {
  return new S3Error('ServiceUnavailable', {
    message:
      'The parts of this upload are kept by another server behind this address, the one where the upload was begun; nothing of them is lost. All requests of one upload must reach the same server: have the load balancer keep each client with one server, or give all servers one --staging.',
    headers: { 'Retry-After': '1', connection: 'close' },
  })
}

export function noSuchUpload(cause?: unknown): S3Error {
  return new S3Error('NoSuchUpload', cause === undefined ? {} : { cause })
}

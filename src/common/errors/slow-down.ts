import { S3Error } from './s3-error.js'

/** Seconds until a client may retry. */
const RETRY_AFTER = 5

/** 503 for a client that this server has no capacity for at present. */
export function slowDown(message: string, { seconds = RETRY_AFTER, cause }: SlowDownFacts = {}): S3Error {
  return new S3Error('SlowDown', { message, cause, headers: { 'retry-after': String(seconds) } })
}

export interface SlowDownFacts {
  /** Until the client may retry. */
  readonly seconds?: number
  readonly cause?: unknown
}

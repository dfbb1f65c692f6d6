import { S3Error } from './s3-error.js'

/** Seconds until a client may retry. */
const RETRY_AFTER = '5'

/** 503 for a client that this server has no capacity for at present. */
export function slowDown(message: string): S3Error {
  return new S3Error('SlowDown', { message, headers: { 'retry-after': RETRY_AFTER } })
}

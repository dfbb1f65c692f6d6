import { S3Error } from '../../../common/errors/s3-error.js'
import type { LockMode } from '../../api/versions.js'
import { readDate } from '../language/operators.js'

export const MODE = 'x-amz-object-lock-mode'
export const UNTIL = 'x-amz-object-lock-retain-until-date'
export const HOLD = 'x-amz-object-lock-legal-hold'

export function isLockMode(mode: string | undefined): mode is LockMode {
  return mode === 'GOVERNANCE' || mode === 'COMPLIANCE'
}

/** Throws InvalidArgument. */
export function readLockMode(text: string): LockMode {
  if (isLockMode(text)) return text
  throw invalidLock('Unknown wormMode directive.', MODE, text)
}

/** Returns true for ON. Throws InvalidArgument. */
export function readLegalHold(text: string): boolean {
  if (text === 'ON' || text === 'OFF') return text === 'ON'
  throw invalidLock('Legal Hold must be either of ON or OFF', HOLD, text)
}

/** Reads a date with a time in ISO 8601, ms since 1970; undefined for any other text. */
export function readEnd(text: string): number | undefined {
  return text.includes('T') ? readDate(text) : undefined
}

/** Reads the end of a retention in a header, ms since 1970. Throws InvalidArgument. */
export function readRetainUntil(text: string): number {
  const until = readEnd(text)
  if (until !== undefined) return until
  throw invalidLock('The retain until date must be provided in ISO 8601 format', UNTIL, text)
}

export function invalidLock(message: string, name: string, value?: string): S3Error {
  const fields = { ArgumentName: name, ...(value !== undefined && { ArgumentValue: value.slice(0, 100) }) }
  return new S3Error('InvalidArgument', { message, fields })
}

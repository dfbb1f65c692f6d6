import { BodyError } from './bodies.js'

/** What a store answers in place of what it was asked for. */
export class S3Refusal extends Error {
  override readonly name = 'S3Refusal'
  readonly status: number
  readonly code: string

  constructor(status: number, code: string, message: string) {
    super(`The store answered ${status} ${code}: ${message}`)
    this.status = status
    this.code = code
  }
}

/** Codes of refusals that say nothing about the request. */
const PASSING = new Set(['RequestTimeout', 'SlowDown', 'BadDigest', 'XAmzContentSHA256Mismatch', 'OperationAborted'])

/** Codes of Node for a host that does not exist, and for certificates that do not hold. */
const LASTING = /^(ENOTFOUND$|CERT_|ERR_TLS_CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|INVALID_CA|HOSTNAME_MISMATCH)/

/** True when the same request may have another outcome later: the store, or the way to it, has failed. */
export function isPassing(error: unknown): boolean {
  if (error instanceof S3Refusal) {
    const { status, code } = error
    return (status >= 500 && status !== 501) || status === 429 || status === 408 || PASSING.has(code)
  }
  // Credentials that are not there make a RangeError.
  if (error instanceof RangeError) return false
  return !LASTING.test((error as NodeJS.ErrnoException | undefined)?.code ?? '')
}

export function unavailable(cause: unknown): BodyError {
  if (cause instanceof BodyError) return cause
  const message = cause instanceof Error ? cause.message : String(cause)
  const kind = isPassing(cause) ? 'unavailable' : 'refused'
  return new BodyError(kind, `The store of bodies cannot be used now: ${message}`, { cause })
}

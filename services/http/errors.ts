import type { SystemFailure } from '../../common/errors/system-errors.js'
import type { ServicesLog } from '../log.js'

export type HeaderList = (string | number)[]

/** A refusal: the status and the message of the answer. */
export class HttpError extends Error {
  override readonly name: string = 'HttpError'
  readonly status: number
  /** Further headers of the answer. */
  readonly headers: HeaderList

  constructor(status: number, message: string, headers: HeaderList = []) {
    super(message)
    this.status = status
    this.headers = headers
  }
}

/** A body did not arrive: its client ended early, or sent nothing for too long. */
export class ReceiveError extends HttpError {
  override readonly name = 'ReceiveError'
  readonly kind: 'Stalled' | 'IncompleteBody'

  constructor(kind: ReceiveError['kind']) {
    if (kind === 'Stalled') super(408, 'The body stopped arriving.')
    else super(400, 'The body ended before its end.')
    this.kind = kind
  }
}

/** One line for the operator: what failed, and what to do. */
export function logSystemFailure(error: unknown, { kind, remedy }: SystemFailure, service: string, log: ServicesLog) {
  log[kind === 'broken' || kind === 'readonly' ? 'error' : 'warn'](
    { err: error },
    `A request to ${service} failed: ${remedy}.`,
  )
}

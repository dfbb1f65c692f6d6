import { isDiskFull } from '../../../common/disk-reserve.js'
import { ReceiveError } from '../../http/receive.js'
import { type Answerable, reply } from '../../http/reply.js'
import type { ServicesLog } from '../../log.js'
import { PlatformError } from '../errors.js'

const JSON_TYPE = 'application/json; charset=utf-8'

/** Answers 200: clients take any other status for a failure. */
export function replySuccess(exchange: Answerable, members: object): void {
  const body = Buffer.from(JSON.stringify({ status: 'success', ...members }))
  reply(exchange, 200, ['Content-Type', JSON_TYPE, 'Cache-Control', 'no-store'], body)
}

/** Answers with `{status: "fail", message}`. Unexpected errors are logged and become 500. */
export function replyFailure(exchange: Answerable, error: unknown, log: ServicesLog): void {
  const { status, message, headers } = asPlatformError(error, log)
  reply(exchange, status, ['Content-Type', JSON_TYPE, ...headers], Buffer.from(failureText(message)))
}

export function failureText(message: string): string {
  return JSON.stringify({ status: 'fail', message })
}

function asPlatformError(error: unknown, log: ServicesLog): PlatformError {
  if (error instanceof PlatformError) return error
  if (error instanceof ReceiveError) return new PlatformError(error.kind === 'Stalled' ? 408 : 400, error.message)
  if (isDiskFull(error)) return new PlatformError(507, 'The disk of the platform is full.')
  log.error({ err: error }, 'A request to the task platform failed.')
  return new PlatformError(500, 'The platform could not answer because of an internal error.')
}

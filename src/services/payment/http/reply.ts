import { isDiskFull } from '../../../common/disk-reserve.js'
import { ReceiveError } from '../../http/receive.js'
import { type Answerable, reply } from '../../http/reply.js'
import type { ServicesLog } from '../../log.js'
import { PaymentError } from '../errors.js'

const JSON_TYPE = 'application/json; charset=utf-8'

/** Answers 200 with `{status, code, data}`. @param code undefined: the answer has none */
export function replySuccess(exchange: Answerable, data: unknown, code: 200 | '200' | undefined): void {
  const body = JSON.stringify({ status: 'success', code, data })
  reply(exchange, 200, ['Content-Type', JSON_TYPE, 'Cache-Control', 'no-store'], Buffer.from(body))
}

/** Answers with `{status: "error", code, message}`. Unexpected errors are logged and become 500. */
export function replyFailure(exchange: Answerable, error: unknown, log: ServicesLog): void {
  const failure = asPaymentError(error, log)
  const headers = ['Content-Type', JSON_TYPE, 'Cache-Control', 'no-store', ...failure.headers]
  reply(exchange, failure.status, headers, Buffer.from(failureText(failure)))
}

export function failureText({ code, message }: PaymentError): string {
  return JSON.stringify({ status: 'error', code, message })
}

function asPaymentError(error: unknown, log: ServicesLog): PaymentError {
  if (error instanceof PaymentError) return error
  if (error instanceof ReceiveError) {
    return new PaymentError(error.kind === 'Stalled' ? 'late' : 'structure', error.message)
  }
  if (isDiskFull(error)) return new PaymentError('full', 'the disk of the service is full')
  log.error({ err: error }, 'A request to the storage payment service failed.')
  return new PaymentError('internal', 'the service could not answer')
}

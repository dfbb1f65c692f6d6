import { type HeaderList, HttpError } from '../http/errors.js'

/**
 * The kinds of refusals: their HTTP status, the code and the text in the body. The first five have the codes of the
 * interface; the others have that of their HTTP status, because it names none.
 */
const kinds = {
  missing: [400, 10001, 'param cannot be null'],
  type: [400, 10002, 'param data type is wrong'],
  value: [400, 10003, 'param value is invalid'],
  structure: [400, 10004, 'params parse to structure fail'],
  internal: [500, 20001, 'Internal error'],
  unauthorized: [401, 401, 'not signed in'],
  forbidden: [403, 403, 'not allowed'],
  absent: [404, 404, 'not found'],
  method: [405, 405, 'method not allowed'],
  unacceptable: [406, 406, 'not acceptable'],
  late: [408, 408, 'request timeout'],
  conflict: [409, 409, 'conflict'],
  gone: [410, 410, 'gone'],
  unmet: [412, 412, 'precondition failed'],
  large: [413, 413, 'too large'],
  often: [429, 429, 'too many requests'],
  coding: [501, 501, 'not implemented'],
  busy: [503, 503, 'try again later'],
  full: [507, 507, 'no room'],
} as const satisfies Record<string, readonly [status: number, code: number, text: string]>

export type Kind = keyof typeof kinds

export class PaymentError extends HttpError {
  override readonly name = 'PaymentError'
  readonly code: number

  /** @param detail a sentence for the client, behind the text of the kind */
  constructor(kind: Kind, detail: string, headers: HeaderList = []) {
    const [status, code, text] = kinds[kind]
    super(status, `${text}:${detail}`, headers)
    this.code = code
  }

  /** A refusal of the HTTP layer, which is about the structure of a request or has the code of its status. */
  static of(error: HttpError): PaymentError {
    if (error instanceof PaymentError) return error
    const names = Object.keys(kinds) as Kind[]
    const kind = error.status === 400 ? 'structure' : names.find((name) => kinds[name][0] === error.status)
    return new PaymentError(kind ?? 'structure', error.message, error.headers)
  }
}

/** What the service answers where it refuses a request. */
export function failureOf(error: HttpError): object {
  const { code, message } = PaymentError.of(error)
  return { status: 'error', code, message }
}

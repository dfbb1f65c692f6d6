import { type HttpExchange, readBody } from '../http/body.js'
import { bearerOf } from '../http/routes.js'
import { type Field, jsonFields } from '../rest/fields.js'
import { parseAddress } from './addresses.js'
import type { Mode, PaymentContext } from './context.js'
import { PaymentError } from './errors.js'
import type { UploadRow } from './uploads/upload-table.js'
import type { KnownWallet } from './wallets.js'

/** One request and its response. */
export interface PaymentExchange extends HttpExchange {
  readonly context: PaymentContext
  readonly query: URLSearchParams
  /** Values of the variable segments in the path of the route, percent-decoded. */
  readonly path: Readonly<Record<string, string>>
  /** The wallet that signed in; undefined on public routes, and in the mode `open`. */
  readonly caller: KnownWallet | undefined
}

export interface Route {
  readonly method: 'GET' | 'HEAD' | 'OPTIONS' | 'POST'
  readonly path: string
  /** `wallet` needs the JWT of a sign-in in the mode `signedIn`; `public` ignores the Authorization header. */
  readonly access: 'public' | 'wallet'
  /** The only mode that has the endpoint; absent: both. */
  readonly only?: Mode
  /** Mode whose answer has no `code`. */
  readonly codeless?: Mode
  /** True where `code` is a text, as in the interface. */
  readonly codeAsText?: true
  /** Returns `data` of the answer, or answers itself and returns undefined. Throws HttpError. */
  answer(exchange: PaymentExchange): Promise<unknown> | unknown
}

/** The signed-in wallet of a request; undefined where none needs to sign in. Throws PaymentError `unauthorized`. */
export async function callerOf(
  { context, request }: Pick<PaymentExchange, 'context' | 'request'>,
  { access }: Pick<Route, 'access'>,
): Promise<KnownWallet | undefined> {
  if (context.mode === 'open' || access === 'public') return undefined
  const token = bearerOf(request)
  const caller = token === undefined ? undefined : await context.tokens.walletOf(token, context.seconds())
  if (caller === undefined) {
    throw new PaymentError('unauthorized', 'sign in and send `Authorization: Bearer` with a valid jwt_token', [
      'WWW-Authenticate',
      'Bearer',
    ])
  }
  return caller
}

/**
 * Address of the wallet that a request is about, in lower case: the one that it names, which after a sign-in must be
 * the signed-in one and may be left out. Throws PaymentError.
 * @param given `wallet_address` of the request
 */
export function walletAddressOf({ caller }: Pick<PaymentExchange, 'caller'>, given: string | undefined): string {
  if (given === undefined) {
    if (caller === undefined) throw new PaymentError('missing', 'wallet_address is required')
    return caller.address
  }
  const address = readAddress('wallet_address', given)
  if (caller !== undefined && caller.address !== address) {
    throw new PaymentError('forbidden', 'wallet_address is not the wallet that signed in')
  }
  return address
}

/** Throws PaymentError `value`. */
export function readAddress(name: string, text: string): string {
  const address = parseAddress(text)
  if (address === undefined) throw new PaymentError('value', `${name} must be 0x and 40 hexadecimal digits`)
  return address
}

/**
 * The upload with this number. After a sign-in that of another wallet is as good as none: an answer must not confirm
 * it. Throws PaymentError `absent`.
 */
export async function ownUpload(
  { context, caller }: Pick<PaymentExchange, 'context' | 'caller'>,
  id: number,
): Promise<UploadRow> {
  const upload = await context.db.read.uploads.find(id)
  if (upload === undefined || (caller !== undefined && caller.address !== upload.wallet)) {
    throw new PaymentError('absent', `source file upload:${id} not exists`)
  }
  return upload
}

/** Longest text of a field. */
const MAX_TEXT = 1024

export class Fields {
  readonly #values: ReadonlyMap<string, string>

  /** The first of two fields with one name counts. */
  constructor(fields: Iterable<Field>) {
    this.#values = new Map([...fields].reverse())
  }

  /** The text without spaces around it; undefined when it is absent or empty. Throws PaymentError `value`. */
  get(name: string): string | undefined {
    const text = this.#values.get(name)?.trim() ?? ''
    // SQLite cuts texts at NUL.
    if (text.length > MAX_TEXT || text.includes('\0') || !text.isWellFormed()) {
      throw new PaymentError('value', `${name} must be a text of at most ${MAX_TEXT} characters`)
    }
    return text === '' ? undefined : text
  }

  /** Throws PaymentError `missing` when the field is absent or empty. */
  required(name: string): string {
    const text = this.get(name)
    if (text === undefined) throw new PaymentError('missing', `${name} is required`)
    return text
  }

  /** A number above 0, such as an id. Throws PaymentError: `missing`, `type` or `value`. */
  id(name: string): number {
    const text = this.required(name)
    if (!/^-?\d{1,15}$/.test(text)) throw new PaymentError('type', `${name} must be a valid number`)
    if (Number(text) < 1) throw new PaymentError('value', `${name} must be greater than 0`)
    return Number(text)
  }
}

/**
 * Reads a JSON object of texts and numbers, whatever its Content-Type: a known client sends none. Throws HttpError: 400
 * for any other body, 413 and 408 beyond the limits.
 */
export async function readJson(exchange: PaymentExchange): Promise<Fields> {
  const { maxJsonBytes: maxBytes, jsonMs: totalMs, bodyIdleMs: idleMs } = exchange.context.limits
  return new Fields(jsonFields(await readBody(exchange, { maxBytes, totalMs, idleMs })))
}

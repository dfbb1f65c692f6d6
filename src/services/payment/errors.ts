import type { HeaderList } from '../http/reply.js'
import type { Route } from './http.js'

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

/** A refusal of the storage payment API. Any other error is answered with 500. */
export class PaymentError extends Error {
  override readonly name = 'PaymentError'
  readonly status: number
  /** The number in the body. */
  readonly code: number
  readonly headers: HeaderList

  /** @param detail a sentence for the client, behind the text of the kind */
  constructor(kind: keyof typeof kinds, detail: string, headers: HeaderList = []) {
    const [status, code, text] = kinds[kind]
    super(`${text}:${detail}`)
    this.status = status
    this.code = code
    this.headers = headers
  }
}

/** Words that clients of a deployment use in names of the interface. Lower-case letters and digits. */
export interface Words {
  /** In place of `storage_coin` and `storagecoin`. */
  readonly coin: string
  /** In place of `stable`, of the address of the stable coin. */
  readonly stable: string
  /** In place of `wallet`, in the path of the sign-in. */
  readonly wallet: string
}

/** The three words of an option, separated by commas, in the order of `Words`. */
export function readWords(text: string): Words {
  const [coin = '', stable = '', wallet = ''] = text.split(',')
  return { coin, stable, wallet }
}

/** The routes, and those whose paths contain other words once more by these. */
export function withRoutesInWords(routes: readonly Route[], words: Words | undefined): readonly Route[] {
  if (words === undefined) return routes
  return withRenamed(
    routes.map((route) => [route.path, route] as const),
    (path) => path.replace('/storagecoin', `/${words.coin}`).replace('_by_wallet_', `_by_${words.wallet}_`),
  ).map(([path, route]) => ({ ...route, path }))
}

/** The members, and those whose names contain other words once more by these. Names in upper case stay so. */
export function withMembersInWords(members: object, words: Words | undefined): object {
  if (words === undefined) return members
  const rename = (name: string): string =>
    name.replace(/^storage_coin_/, `${words.coin}_`).replace(/^stable_address$/, `${words.stable}_address`)
  const renamed = withRenamed(Object.entries(members), (name) =>
    name === name.toUpperCase() ? rename(name.toLowerCase()).toUpperCase() : rename(name),
  )
  return Object.fromEntries(renamed)
}

function withRenamed<T>(
  named: readonly (readonly [string, T])[],
  rename: (name: string) => string,
): (readonly [string, T])[] {
  return named.flatMap(([name, value]) => {
    const other = rename(name)
    return other === name
      ? [[name, value]]
      : [
          [name, value],
          [other, value],
        ]
  })
}

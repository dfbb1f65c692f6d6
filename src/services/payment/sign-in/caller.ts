import { PaymentError } from '../errors.js'
import type { Exchange } from '../http/exchange.js'
import type { Route } from '../http/route.js'
import { parseAddress } from '../wallets/address.js'
import type { KnownWallet } from '../wallets/wallets.js'

const BEARER = /^Bearer +(\S+) *$/i

/** The signed-in wallet of a request; undefined where none needs to sign in. Throws PaymentError `unauthorized`. */
export async function callerOf(
  { context, request }: Pick<Exchange, 'context' | 'request'>,
  { access }: Pick<Route, 'access'>,
): Promise<KnownWallet | undefined> {
  if (context.variant === 'b' || access === 'public') return undefined
  const token = BEARER.exec(request.headers.authorization ?? '')?.[1]
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
 * Address of the wallet that a request is about, in lower case: the one that it names, which in variant A must be the
 * signed-in one and may be left out. Throws PaymentError.
 * @param given `wallet_address` of the request
 */
export function walletAddressOf({ caller }: Pick<Exchange, 'caller'>, given: string | undefined): string {
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

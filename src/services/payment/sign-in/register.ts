import type { Exchange } from '../http/exchange.js'
import { readJson } from '../http/json-body.js'
import { readAddress } from './caller.js'

/** POST /user/register: a nonce for the wallet to sign, which can be used once and soon expires. */
export async function register(exchange: Exchange): Promise<object> {
  const { nonces, seconds, limits } = exchange.context
  const fields = await readJson(exchange)
  const address = readAddress('public_key_address', fields.required('public_key_address'))
  return { nonce: nonces.issue(address, seconds() + limits.nonceSeconds) }
}

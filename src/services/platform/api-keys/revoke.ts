import { PlatformError } from '../errors.js'
import { readFields } from '../http/body.js'
import type { Exchange } from '../http/exchange.js'
import { requireUser } from '../sign-in/caller.js'

/** GET /user/api_keys: the keys of the caller, without their secrets. */
export function listKeys(exchange: Exchange): object {
  const keys = exchange.context.apiKeys.ofUser(requireUser(exchange).id)
  const records = keys.map(({ apikey, name, created }) => ({
    apikey,
    created_on: String(created),
    key_name: name,
    status: 'Created',
  }))
  return { data: { api_keys: records } }
}

/** The account has one key pair, with which programs may store objects: a revocation does not change it. */
const STAYS_VALID =
  'The API key and its JWTs are not valid any more, and sessions that were made with them end. The key pair that the ' +
  'gateway hands out for such a JWT belongs to the account and stays valid: if another party may have it, replace its ' +
  'secret key by web.SetAuth or with `dealgate account rotate`.'

/** POST /user/api_keys/revoke: removes the key `apikey` of the caller, and with it the JWTs that were issued for it. */
export async function revokeKey(exchange: Exchange): Promise<object> {
  const user = requireUser(exchange)
  const apikey = (await readFields(exchange)).required('apikey')
  const { apiKeys, writer } = exchange.context
  const removed = await writer.run(() => apiKeys.remove(apikey, user.id))
  if (!removed) throw new PlatformError(404, 'You have no such API key.')
  return { data: { apikey, status: 'Revoked' }, message: STAYS_VALID }
}

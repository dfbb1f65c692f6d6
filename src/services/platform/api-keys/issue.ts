import { PlatformError } from '../errors.js'
import { readFields } from '../http/body.js'
import type { Exchange } from '../http/exchange.js'
import { callerOf, requireUser } from '../sign-in/caller.js'
import { newApiKey } from './api-keys.js'

const LONGEST_NAME = 128

/**
 * POST /user/api_keys/jwt: two calls, told apart by the body. `key_name` with the JWT of a sign-in makes an API key;
 * `apikey` and `access_token`, its secret, get a JWT, without regard to the Authorization header.
 */
export async function issueKeyOrJwt(exchange: Exchange): Promise<object> {
  const fields = await readFields(exchange)
  const forJwt = fields.has('apikey') || fields.has('access_token')
  if (forJwt && fields.has('key_name')) {
    throw new PlatformError(400, 'Send key_name for an API key, or apikey and access_token for a JWT, not both.')
  }
  if (forJwt) return issueJwt(exchange, fields.required('apikey'), fields.required('access_token'))
  return issueKey({ ...exchange, caller: await callerOf(exchange, 'signed-in') }, fields.required('key_name'))
}

async function issueKey(exchange: Exchange, name: string): Promise<object> {
  if (name.length > LONGEST_NAME) {
    throw new PlatformError(400, `The name of a key has at most ${LONGEST_NAME} characters.`)
  }
  const user = requireUser(exchange)
  const { apiKeys, writer, tokens, seconds } = exchange.context
  const made = newApiKey()
  const created = seconds()
  await writer.run(() => apiKeys.add(made, user.id, name, created))
  const record = {
    access_token: made.secret,
    apikey: made.apikey,
    created_on: String(created),
    jwt: await tokens.ofApiKey(made.apikey),
    key_name: name,
    status: 'Created',
  }
  return { auth_token: record, message: 'The secret and the JWT are shown this once: keep them.' }
}

async function issueJwt({ context }: Exchange, apikey: string, secret: string): Promise<object> {
  const { apiKeys, tokens } = context
  // The texts are those that clients know.
  if (apiKeys.userOf(apikey) === undefined) throw new PlatformError(401, 'api_key Not found')
  if (!apiKeys.isSecretOf(apikey, secret)) throw new PlatformError(401, 'Please provide a valid api token.')
  return { data: { api_key: apikey, jwt: await tokens.ofApiKey(apikey) } }
}

import { S3Error } from 'dealgate'
import { z } from 'zod'
import type { TaskOptions } from '../options.js'
import type { PlatformAnswer, PlatformClient } from '../platform-client.js'
import { inForm, type Refusals, successOf, TokenRefused } from '../wire/answer.js'
import { spelled } from '../wire/field-names.js'
import { text } from '../wire/members.js'
import { wireApiKey } from '../wire/records.js'
import type { Login } from './login.js'

type Names = TaskOptions['names']

const token = z.string().min(1)

/** Of calls whose body is the log-in. */
const unknown: Refusals = { missing: () => new TokenRefused('The task platform does not know this log-in.') }

/** Signs in. Throws TokenRefused for a wrong password, AnswerLost and S3Error. */
export async function signIn(client: PlatformClient, names: Names, { email, password }: Required<Login>['signIn']) {
  const answer = await client.send({
    method: 'POST',
    path: ['auth', 'login'],
    body: { kind: 'json', fields: spelled({ Email: email, Password: password }, names) },
  })
  const { auth_token, message } = successOf(answer, unknown)
  return { token: inForm(auth_token, token), message }
}

/** Makes an API key. Throws as `signIn`. */
export async function issueKey(
  client: PlatformClient,
  names: Names,
  key: { readonly name: string; readonly extra: Readonly<Record<string, string>> },
  token: string,
) {
  const answer = await client.send({
    method: 'POST',
    path: ['user', 'api_keys', 'jwt'],
    token,
    body: { kind: 'json', fields: [...Object.entries(key.extra), ...spelled({ KeyName: key.name }, names)] },
  })
  const said = successOf(answer, {
    forbidden: (message) => new S3Error('PlatformIdentityRequired', { message: `The task platform says: ${message}` }),
  })
  return inForm(said.auth_token ?? said.data, wireApiKey)
}

/** Gets the JWT of an API key. Throws as `signIn`. */
export async function issueJwt(client: PlatformClient, names: Names, key: Required<Login>['apiKey']) {
  const answer: PlatformAnswer = await client.send({
    method: 'POST',
    path: ['user', 'api_keys', 'jwt'],
    body: { kind: 'json', fields: spelled({ ApiKey: key.apikey, AccessToken: key.accessToken }, names) },
  })
  return inForm(successOf(answer, unknown).data, z.object({ jwt: token, api_key: text })).jwt
}

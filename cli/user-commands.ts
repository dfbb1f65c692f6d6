import { newPassword } from '../services/platform/password.js'
import { hasUsers, openUserRegistry, type UserRegistry } from '../services/platform/user-registry.js'
import { Failure, print, withRegistry } from './command.js'
import { type Config, ConfigError } from './config/config.js'
import { columns, SecretReader } from './keys/key-commands.js'
import type { Changed } from './running.js'
import { servicesFolder } from './serve/gateway.js'

export interface AccountFlags {
  readonly password?: string
  readonly email?: string
  readonly name?: string
  readonly accountAccessKey?: string
  readonly accountSecretKey?: string
}

/** The key pair belongs to the account: a token that ends does not change it. */
const PAIR_STAYS =
  'The key pair of the account at the gateway stays valid. If another party may have it: dealgate account rotate <access key>\n'

/** `dealgate account add --email`: adds a user of the task platform, and prints the password unless it was given. */
export async function addUser(config: Config, email: string, own: AccountFlags): Promise<Changed> {
  if (own.name !== undefined || own.accountAccessKey !== undefined || own.accountSecretKey !== undefined) {
    throw new ConfigError(['--email goes with --password alone: the user gets an account of its own at the gateway'])
  }
  const { password, made } = await obtainPassword(own)
  const user = await within(config, (registry) => registry.add(email, password))
  const shown = made ? { password } : {}
  print(
    config,
    { email: user.email, ...shown },
    `e-mail    ${user.email}
${made ? `password  ${password}\n` : ''}
A task platform that runs with this data folder knows the user already.${made ? ' The password is not shown again.' : ''}
The user gets an account at the gateway with the first: dealgate login --email ${user.email}
`,
  )
  return { resource: user.email }
}

/** `dealgate account password <e-mail>`: ends every sign-in of the user. */
export async function changePassword(
  config: Config,
  email: string,
  own: { readonly password?: string },
): Promise<Changed> {
  const { password, made } = await obtainPassword(own)
  const { user, keys } = await within(config, async (registry) => ({
    user: await registry.setPassword(email, password),
    keys: (await registry.apiKeys(email)).length,
  }))
  const shown = made ? { password } : {}
  print(
    config,
    { email: user.email, ...shown, apiKeys: keys },
    `e-mail    ${user.email}
${made ? `password  ${password}\n` : ''}
Tokens of earlier sign-ins are not valid any more.${made ? ' The password is not shown again.' : ''}
${PAIR_STAYS}${keys === 0 ? '' : `API keys of the user stay valid: ${keys}. To revoke them: dealgate account api-keys ${user.email} --revoke all\n`}`,
  )
  return { resource: user.email }
}

export async function userApiKeys(
  config: Config,
  email: string,
  { revoke }: { readonly revoke?: string },
): Promise<Changed> {
  const keys = await within(config, (registry) =>
    revoke === undefined
      ? registry.apiKeys(email)
      : registry.revokeApiKeys(email, revoke === 'all' ? undefined : revoke),
  )
  const shown = keys.map(({ apikey, name, created }) => ({
    apiKey: apikey,
    name,
    created: `${new Date(created * 1000).toISOString().slice(0, 19)}Z`,
  }))
  if (config.print === 'json') {
    process.stdout.write(`${JSON.stringify(shown)}\n`)
    return { resource: email }
  }
  const rows = shown.map(({ apiKey, name, created }) => [apiKey, name, created])
  const title = revoke === undefined ? '' : `Revoked: ${shown.length}\n`
  const rest = revoke === undefined || shown.length === 0 ? '' : `\n${PAIR_STAYS}`
  process.stdout.write(`${title}${columns([['API KEY', 'NAME', 'CREATED'], ...rows])}${rest}`)
  return { resource: email }
}

async function obtainPassword({
  password: given,
}: {
  readonly password?: string
}): Promise<{ password: string; made: boolean }> {
  if (given === undefined) return { password: newPassword(), made: true }
  const secrets = new SecretReader()
  try {
    return { password: await secrets.read(given), made: false }
  } finally {
    secrets.close()
  }
}

async function within<T>(config: Config, use: (registry: UserRegistry) => T | Promise<T>): Promise<T> {
  if (config.platformUrl !== undefined || config.gatewayUrl !== undefined) {
    throw new Failure('The users of another task platform are managed there, not in the data folder.')
  }
  const folder = servicesFolder(config)
  if (config.database === undefined && !hasUsers(folder)) {
    throw new Failure(`The data folder ${config.data} has no task platform yet: start \`dealgate serve\` once.`)
  }
  return withRegistry(await openUserRegistry(folder, config.database), use)
}

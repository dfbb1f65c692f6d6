import { S3Error } from '../../common/errors/s3-error.js'
import {
  type AccountRegistry,
  hasAccounts,
  openAccountRegistry,
} from '../../services/gateway/accounts/account-registry.js'
import type { GatewayAccount, Identity } from '../../src/api/identity.js'
import { canonicalId, OWN_ID } from '../../src/auth/credentials.js'
import { Failure } from '../command.js'
import type { Config } from '../config/config.js'
import type { CredentialsChecks } from '../process/identities-file.js'
import { servicesFolder } from '../serve/gateway.js'
import { changeCredentials, readCredentials } from './credentials-file.js'

/**
 * Opens the accounts of the embedded gateway. Throws Failure.
 * @param create the data folder, where it does not exist
 */
export async function openAccounts(
  config: Pick<Config, 'gatewayUrl' | 'data' | 'database'>,
  { create }: { create: boolean },
): Promise<AccountRegistry> {
  if (config.gatewayUrl !== undefined) {
    throw new Failure(`The accounts of the gateway at ${config.gatewayUrl} are managed there, not in the data folder.`)
  }
  const folder = servicesFolder(config)
  if (!create && config.database === undefined && !hasAccounts(folder)) {
    throw new Failure(`The data folder ${config.data} has no embedded gateway yet: start one, or add an account.`)
  }
  return openAccountRegistry(folder, config.database)
}

/** Opens the accounts for `use`, and closes them. Throws Failure. */
export async function withinAccounts<T>(
  config: Pick<Config, 'gatewayUrl' | 'data' | 'database'>,
  how: { create: boolean },
  use: (registry: AccountRegistry) => Promise<T>,
): Promise<T> {
  const registry = await openAccounts(config, how)
  try {
    return await withFailures(() => use(registry))
  } finally {
    await registry.close()
  }
}

/** Throws a Failure for what the accounts refuse. */
export async function withFailures<T>(use: () => Promise<T>): Promise<T> {
  try {
    return await use()
  } catch (error) {
    throw error instanceof RangeError ? new Failure(error.message, { cause: error }) : error
  }
}

/**
 * Throws Failure while key pairs name the access key: they are left from a removed account, and would get the secret of
 * the new one when it is rotated.
 */
export async function requireUnused(file: string, accessKey: string): Promise<void> {
  const users = await keysActingAs(file, accessKey)
  if (users.length === 0) return
  const message = `Key pairs act as an account with this access key: remove them first (${users.join(', ')}).`
  throw new Failure(message, { cause: new S3Error('EntityAlreadyExists', { message }) })
}

/** The access key ids of the key pairs that act as an account. */
export async function keysActingAs(file: string, accessKey: string): Promise<string[]> {
  const all = await readCredentials(file)
  return all.filter(({ account }) => account?.accessKey === accessKey).map(({ accessKeyId }) => accessKeyId)
}

/** Gives the key pairs of the file that act as the account its secret. Resolves with their access key ids. */
export async function giveSecret(file: string, account: GatewayAccount, checks?: CredentialsChecks): Promise<string[]> {
  const users = await keysActingAs(file, account.accessKey)
  if (users.length > 0) {
    const given = (identity: Identity) =>
      identity.account?.accessKey === account.accessKey ? { ...identity, account } : identity
    await changeCredentials(file, (all) => all.map(given), checks)
  }
  return users
}

/** The canonical id is that by which policies and ACLs of this server name the account, not that of the gateway. */
export function shownAccount(listed: Awaited<ReturnType<AccountRegistry['all']>>[number]) {
  const { accessKey, secretKey, name, isIamUser, created, buckets, quota, usage } = listed
  const id = isIamUser ? canonicalId({ account: { accessKey, secretKey } }) : OWN_ID
  return { accessKey, name, canonicalId: id, isIamUser, created, buckets, quota, usage }
}

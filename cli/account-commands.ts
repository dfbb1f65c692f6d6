import { canonicalId } from '../src/auth/credentials.js'
import { Failure, print } from './command.js'
import { type Config, ConfigError } from './config/config.js'
import { giveSecret, keysActingAs, requireUnused, shownAccount, withinAccounts } from './keys/accounts.js'
import { credentialsPath } from './keys/credentials-file.js'
import { columns, SecretReader } from './keys/key-commands.js'
import type { Changed } from './running.js'
import { type AccountFlags, addUser } from './user-commands.js'

interface QuotaFlags {
  readonly bytes?: string
  readonly objects?: string
  readonly uploads?: string
}

export async function addAccount(config: Config, own: AccountFlags): Promise<Changed> {
  if (own.email !== undefined) return addUser(config, own.email, own)
  if (own.password !== undefined) throw new ConfigError(['--password needs --email beside it'])
  const pair = await readPair(own)
  const name = own.name ?? ''
  if (!/^[^\p{Cc}]{0,128}$/u.test(name)) throw new ConfigError(['--name must have at most 128 characters on one line'])
  if (pair) await requireUnused(credentialsPath(config), pair.accessKey)
  const account = await withinAccounts(config, { create: true }, (registry) => registry.add(name, pair))
  const { accessKey, secretKey } = account
  const id = canonicalId({ account })
  print(
    config,
    { accessKey, secretKey, canonicalId: id, name },
    `access key    ${accessKey}
secret key    ${secretKey}
canonical id  ${id}

A gateway that runs with this data folder knows the account already. The secret is not shown again.
An S3 key pair for it: dealgate keys add --account-access-key ${accessKey} --account-secret-key -
`,
  )
  return { resource: accessKey }
}

/** `dealgate account list`: never shows a secret. */
export async function listAccounts(config: Config): Promise<void> {
  const accounts = await withinAccounts(config, { create: false }, (registry) => registry.all())
  if (config.print === 'json') {
    process.stdout.write(`${JSON.stringify(accounts.map(shownAccount))}\n`)
    return
  }
  const rows = accounts.map((account) => {
    const { accessKey, name, buckets, created, canonicalId } = shownAccount(account)
    return [accessKey, name || '-', String(buckets), `${created.slice(0, 19)}Z`, canonicalId]
  })
  process.stdout.write(columns([['ACCESS KEY', 'NAME', 'BUCKETS', 'CREATED', 'CANONICAL ID'], ...rows]))
}

export async function removeAccount(config: Config, accessKey: string): Promise<Changed> {
  const file = credentialsPath(config)
  const keys = await keysActingAs(file, accessKey)
  await withinAccounts(config, { create: false }, (registry) => registry.remove(accessKey))
  print(
    config,
    { accessKey, keys },
    `Removed the account ${accessKey}.\n${keys.length === 0 ? '' : `These key pairs of ${file} act as it and no longer work: ${keys.join(', ')}.\n`}`,
  )
  return { resource: accessKey }
}

/**
 * `dealgate account rotate <access key>`: makes a new secret key, prints it, and writes it into the credentials file. A
 * repetition after a crash repairs the file.
 */
export async function rotateAccount(config: Config, accessKey: string): Promise<Changed> {
  const { after } = await withinAccounts(config, { create: false }, (registry) => registry.rotate(accessKey))
  const { secretKey } = after
  const stored = await giveSecret(credentialsPath(config), { accessKey, secretKey }).catch((error: Error) => error)
  const failed = stored instanceof Error
  print(
    config,
    { accessKey, secretKey, keys: failed ? [] : stored },
    `access key  ${accessKey}
secret key  ${secretKey}

The former secret is not valid any more. The new one is not shown again.
${failed || stored.length === 0 ? '' : `${credentialsPath(config)} has it for the key pairs ${stored.join(', ')}.\n`}`,
  )
  if (failed) {
    throw new Failure(
      `The account has its new secret, but the credentials file still has the former one: ${stored.message} Repeat the command when this is mended.`,
      { cause: stored },
    )
  }
  return { resource: accessKey }
}

export async function accountQuota(config: Config, accessKey: string, own: QuotaFlags): Promise<Changed> {
  const change = {
    ...(own.bytes !== undefined && { bytes: boundOf('--bytes', own.bytes) }),
    ...(own.objects !== undefined && { objects: boundOf('--objects', own.objects) }),
    ...(own.uploads !== undefined && { uploads: boundOf('--uploads', own.uploads) }),
  }
  const { quota, usage } = await withinAccounts(config, { create: false }, (registry) =>
    registry.quota(accessKey, change),
  )
  const text = (bound: number | null) => (bound === null ? 'none' : String(bound))
  print(
    config,
    { accessKey, quota, usage },
    columns([
      ['', 'STORED', 'QUOTA'],
      ['bytes', String(usage.bytes), text(quota.bytes)],
      ['objects', String(usage.objects), text(quota.objects)],
      // Servers count them, each in its state.
      ['uploads', '-', text(quota.uploads)],
    ]),
  )
  return { resource: accessKey }
}

function boundOf(flag: string, given: string): number | null {
  if (given === 'none') return null
  if (/^\d{1,15}$/.test(given)) return Number(given)
  throw new ConfigError([`${flag} must be a whole number, or none`])
}

async function readPair(own: AccountFlags) {
  const { accountAccessKey: accessKey, accountSecretKey: given } = own
  if ((accessKey === undefined) !== (given === undefined)) {
    throw new ConfigError(['--account-access-key and --account-secret-key go together'])
  }
  if (accessKey === undefined || given === undefined) return undefined
  const secrets = new SecretReader()
  const secretKey = await secrets.read(given)
  secrets.close()
  return { accessKey, secretKey }
}

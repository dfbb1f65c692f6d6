import { homedir } from 'node:os'
import { join } from 'node:path'
import type { GatewayAccount } from '../../auth/caller.js'
import { S3Error } from '../../common/errors/s3-error.js'
import { makePrivateFolder, writePrivateFile } from '../../common/files/private-file.js'
import { createLogger } from '../../common/log.js'
import { createGatewayPool } from '../../gateway/account/create-gateway.js'
import { awsFiles, refuseForeignProfile, writeAwsProfile } from '../aws-profile.js'
import { type Config, ConfigError, variable } from '../config/config.js'
import { Failure } from '../failure.js'
import { SecretReader } from '../keys/key-commands.js'
import type { LoginFlags } from '../program.js'
import { endpointOf, serviceOf } from '../running.js'
import { gatewayTlsOf } from '../serve/tls-files.js'
import { type Assumed, assume } from './assume.js'
import { ask, askSecretly } from './prompt.js'
import { signIn } from './sign-in.js'

/**
 * `dealgate login`: signs a person in at the task platform, gets the key pair of the account at the gateway, and writes
 * temporary credentials of the S3 endpoint into a profile of aws-cli.
 */
export async function login(config: Config, own: LoginFlags): Promise<void> {
  const places = placesOf(config, own)
  const { profile, platform, gateway, endpoint } = places
  const aws = own.aws === false ? undefined : awsFiles()
  if (aws && !own.force) refuseForeignProfile(aws, profile)
  const email = (own.email ?? (await ask('E-mail: ', '--email'))).trim()
  const password = own.passwordStdin
    ? await firstLine()
    : await askSecretly('Password: ', '--password-stdin and the password there')
  const token = await signIn(platform, email, password)
  const account = await keyPair(config, gateway, token)
  const session = aws && (await assume(endpoint, token))
  const file = keep(profile, { email, ...places, region: config.region, token, ...account })
  if (aws && session) writeAwsProfile(aws, { name: profile, endpoint, region: config.region, ...session })
  process.stdout.write(
    config.print === 'json'
      ? `${JSON.stringify({ profile, email, accessKey: account.accessKey, file, ...(session && { expiration: session.expiration }) })}\n`
      : `Signed in as ${email}.

  account  ${account.accessKey} at ${gateway}
  kept in  ${file}
${session ? usage(profile, session) : ''}`,
  )
}

function usage(profile: string, { expiration }: Assumed): string {
  return `  profile  ${profile} of aws-cli, valid until ${expiration}

aws --profile ${profile} s3 ls
`
}

interface Places {
  readonly profile: string
  readonly platform: string
  readonly gateway: string
  readonly endpoint: string
}

/** Throws a ConfigError that lists all problems. */
function placesOf(config: Config, own: LoginFlags): Places {
  const problems: string[] = []
  const url = (flag: string, text: string) => {
    const parsed = URL.canParse(text) ? new URL(text) : undefined
    const fits = parsed && /^https?:$/.test(parsed.protocol) && !parsed.search && !parsed.hash && !parsed.username
    if (!fits) problems.push(`${flag} must be an http or https URL without a query`)
    return text.replace(/\/+$/, '')
  }
  const profile = own.profile ?? 'dealgate'
  if (!/^[A-Za-z0-9_.-]{1,64}$/.test(profile)) problems.push('--profile has 1 to 64 letters, digits and `_.-`')
  const places = {
    profile,
    platform: url('--platform-url', serviceOf(config, 'platform')),
    gateway: url('--gateway', own.gateway ?? serviceOf(config, 'gateway')),
    endpoint: endpointOf(config, own.endpointUrl).href.replace(/\/+$/, ''),
  }
  if (problems.length > 0) throw new ConfigError(problems)
  return places
}

/** The key pair of the account, with which the gateway has accepted a log-in. Throws Failure. */
async function keyPair(config: Config, url: string, token: string): Promise<GatewayAccount> {
  const brand = { path: config.brandPath, header: config.brandHeader }
  const pool = createGatewayPool({
    url,
    brand,
    tls: gatewayTlsOf(config),
    log: createLogger({ level: config.logLevel, format: config.logFormat }),
  })
  try {
    const account = await pool.keyPairOf(token)
    if (!account) throw new Failure(`The gateway at ${url} does not accept the token of the task platform.`)
    await pool.for(account).listBuckets()
    return account
  } catch (error) {
    if (!(error instanceof S3Error)) throw error
    throw new Failure(`The gateway at ${url} gives no key pair: ${error.message}`, { cause: error })
  } finally {
    await pool.close()
  }
}

/** Keeps a profile of dealgate, readable by its owner alone. Returns its file. */
function keep(profile: string, content: object): string {
  const folder = join(variable('XDG_CONFIG_HOME') ?? join(homedir(), '.config'), 'dealgate', 'profiles')
  const file = join(folder, `${profile}.json`)
  makePrivateFolder(folder)
  writePrivateFile(file, `${JSON.stringify(content, null, 2)}\n`)
  return file
}

async function firstLine(): Promise<string> {
  const secrets = new SecretReader()
  try {
    return await secrets.read('-')
  } finally {
    secrets.close()
  }
}

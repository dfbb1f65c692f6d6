import { homedir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import { S3Error } from '../common/errors/s3-error.js'
import { makePrivateFolder, writePrivateFile } from '../common/files/private-file.js'
import { parseObject } from '../common/json.js'
import { createLogger } from '../common/log.js'
import { type ServiceAnswer, ServiceClient } from '../common/service-client.js'
import { parseDocument, type XmlNode } from '../common/xml.js'
import type { GatewayAccount } from '../src/api/identity.js'
import { createGatewayPool } from '../src/gateway/account/create-gateway.js'
import { awsFiles, refuseForeignProfile, writeAwsProfile } from './aws-profile.js'
import { describeError, Failure, print } from './command.js'
import { type Config, ConfigError, variable } from './config/config.js'
import { SecretReader } from './keys/key-commands.js'
import { endpointOf, serviceOf } from './running.js'
import { gatewayTlsOf } from './serve/server-options.js'

interface LoginFlags {
  readonly email?: string
  readonly passwordStdin?: boolean
  readonly profile?: string
  readonly endpointUrl?: string
  readonly gateway?: string
  /** False for `--no-aws`. */
  readonly aws?: boolean
  readonly force?: boolean
}

/**
 * `dealgate login`: signs a person in at the task platform, gets the key pair of the account at the gateway, and writes
 * temporary credentials of the S3 endpoint into a profile of aws-cli.
 */
export async function login(config: Config, own: LoginFlags): Promise<void> {
  const targets = targetsOf(config, own)
  const { profile, platform, gateway, endpoint } = targets
  const aws = own.aws === false ? undefined : awsFiles()
  if (aws && !own.force) refuseForeignProfile(aws, profile)
  const email = (own.email ?? (await ask('E-mail: ', '--email'))).trim()
  const password = own.passwordStdin
    ? await firstLine()
    : await ask('Password: ', '--password-stdin and the password there', false)
  const token = await signIn(platform, email, password)
  const account = await keyPair(config, gateway, token)
  const session = aws && (await assume(endpoint, token))
  const file = keep(profile, { email, ...targets, region: config.region, token, ...account })
  if (aws && session) writeAwsProfile(aws, { name: profile, endpoint, region: config.region, ...session })
  print(
    config,
    { profile, email, accessKey: account.accessKey, file, ...(session && { expiration: session.expiration }) },
    `Signed in as ${email}.

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

interface LoginTargets {
  readonly profile: string
  readonly platform: string
  readonly gateway: string
  readonly endpoint: string
}

/** Throws a ConfigError that lists all problems. */
function targetsOf(config: Config, own: LoginFlags): LoginTargets {
  const problems: string[] = []
  const url = (flag: string, text: string) => {
    const parsed = URL.canParse(text) ? new URL(text) : undefined
    const fits = parsed && /^https?:$/.test(parsed.protocol) && !parsed.search && !parsed.hash && !parsed.username
    if (!fits) problems.push(`${flag} must be an http or https URL without a query`)
    return text.replace(/\/+$/, '')
  }
  const profile = own.profile ?? 'dealgate'
  if (!/^[A-Za-z0-9_.-]{1,64}$/.test(profile)) problems.push('--profile has 1 to 64 letters, digits and `_.-`')
  const targets = {
    profile,
    platform: url('--platform-url', serviceOf(config, 'platform')),
    gateway: url('--gateway', own.gateway ?? serviceOf(config, 'gateway')),
    endpoint: endpointOf(config, own.endpointUrl).href.replace(/\/+$/, ''),
  }
  if (problems.length > 0) throw new ConfigError(problems)
  return targets
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

/**
 * Sends a form and receives a small answer.
 * @param what names the server in messages: `task platform`
 * @throws Failure when there is no answer
 */
export async function postForm(
  what: string,
  url: string,
  path: readonly string[],
  form: Readonly<Record<string, string>>,
): Promise<ServiceAnswer> {
  const client = new ServiceClient({ service: what, url })
  try {
    return await client.send({ method: 'POST', path, body: { kind: 'form', fields: Object.entries(form) } })
  } catch (error) {
    throw new Failure(`Cannot reach the ${what} at ${url}: ${describeError((error as Error).cause)}`, { cause: error })
  } finally {
    await client.close()
  }
}

/** Asks at the terminal, and shows the answer if it may be `shown`. Throws ConfigError without a terminal. */
export async function ask(question: string, instead: string, shown = true): Promise<string> {
  if (!process.stdin.isTTY) throw new ConfigError([`standard input is no terminal: give ${instead}`])
  process.stderr.write(question)
  const silent = new Writable({ write: (_, __, done) => done() })
  const reader = createInterface({ input: process.stdin, output: shown ? process.stderr : silent, terminal: true })
  try {
    const interrupted = new Promise<never>((_, reject) => {
      reader.once('SIGINT', () => reject(new Failure('interrupted')))
    })
    return await Promise.race([reader.question(''), interrupted])
  } finally {
    reader.close()
    if (!shown) process.stderr.write('\n')
  }
}

/** Signs in at a task platform. Resolves with the JWT. Throws Failure with the reason of the platform. */
async function signIn(platform: string, email: string, password: string): Promise<string> {
  const { status, text } = await postForm('task platform', platform, ['auth', 'login'], { email, password })
  const answer = parseObject(text)
  const token = answer?.auth_token
  if (status === 200 && typeof token === 'string' && token !== '') return token
  const reason =
    typeof answer?.message === 'string' ? answer.message.slice(0, 300) : `It answers with status ${status}.`
  throw new Failure(`The task platform at ${platform} refuses the sign-in: ${reason}`)
}

interface Assumed {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken: string
  /** ISO 8601. */
  readonly expiration: string
}

/** The longest session, seconds. */
const SECONDS = 43_200
const ROLE = 'arn:aws:iam::000000000000:role/platform-user'

/** Exchanges a token of the platform for temporary credentials at an S3 endpoint. Throws Failure. */
async function assume(endpoint: string, token: string): Promise<Assumed> {
  const { status, text } = await postForm('S3 endpoint', endpoint, [], {
    Action: 'AssumeRoleWithWebIdentity',
    Version: '2011-06-15',
    RoleArn: ROLE,
    RoleSessionName: 'dealgate-login',
    DurationSeconds: String(SECONDS),
    WebIdentityToken: token,
  })
  const { node } = await parseDocument(Buffer.from(text)).catch(() => {
    throw new Failure(`The S3 endpoint at ${endpoint} answers with status ${status} and no XML: is it dealgate?`)
  })
  const [accessKeyId, secretAccessKey, sessionToken, expiration] = [
    'AccessKeyId',
    'SecretAccessKey',
    'SessionToken',
    'Expiration',
  ].map((name) => textOf(node, ['AssumeRoleWithWebIdentityResult', 'Credentials', name]))
  if (status === 200 && accessKeyId && secretAccessKey && sessionToken && expiration) {
    return { accessKeyId, secretAccessKey, sessionToken, expiration }
  }
  const [code, message] = ['Code', 'Message'].map((name) => textOf(node, ['Error', name]) ?? textOf(node, [name]))
  throw new Failure(`The S3 endpoint at ${endpoint} issues no credentials: ${code ?? status}: ${message ?? ''}`)
}

function textOf(node: XmlNode, path: readonly string[]): string | undefined {
  let found: XmlNode | undefined = node
  for (const name of path) found = found?.children.get(name)?.[0]
  return found?.text
}

import { createInterface } from 'node:readline'
import type { Identity, Right } from '../../src/api/identity.js'
import { identitySchema, placeOf } from '../../src/auth/identity-schema.js'
import { Failure, print } from '../command.js'
import { type Config, ConfigError } from '../config/config.js'
import type { Changed } from '../running.js'
import { changeCredentials, credentialsPath, readCredentials } from './credentials-file.js'
import { findKeys, generateKeys } from './keys.js'

interface KeyFlags {
  readonly accessKeyId?: string
  readonly secretAccessKey?: string
  readonly accountAccessKey?: string
  readonly accountSecretKey?: string
  readonly right?: readonly string[]
  readonly allow?: readonly string[]
}

/** `dealgate keys add`: adds a key pair to the credentials file and prints it. The secret is not shown again. */
export async function addKey(config: Config, own: KeyFlags): Promise<Changed> {
  const identity = await readIdentity(own)
  const file = credentialsPath(config)
  const owner = await findKeys(config)
  await changeCredentials(file, (identities) => {
    if ([...identities.map((known) => known.accessKeyId), owner?.accessKey].includes(identity.accessKeyId)) {
      throw new Failure(`There is a key pair with the access key id ${identity.accessKeyId} already.`)
    }
    return [...identities, identity]
  })
  const { accessKeyId, secretAccessKey } = identity
  print(
    config,
    { ...shown(identity), secretAccessKey, file },
    `access key  ${accessKeyId}
secret key  ${secretAccessKey}
rights      ${formatRights(identity)}
account     ${identity.account?.accessKey ?? 'that of dealgate'}

Kept in ${file}; a dealgate that runs with this file knows it already. The secret is not shown again.
`,
  )
  return { resource: accessKeyId }
}

/** `dealgate keys list`: never shows a secret. */
export async function listKeys(config: Config): Promise<void> {
  const identities = await readCredentials(credentialsPath(config))
  if (config.print === 'json') {
    process.stdout.write(`${JSON.stringify(identities.map(shown))}\n`)
    return
  }
  const rows = identities.map((identity) => [
    identity.accessKeyId,
    identity.account?.accessKey ?? '-',
    formatRights(identity),
  ])
  process.stdout.write(columns([['ACCESS KEY', 'ACCOUNT', 'RIGHTS'], ...rows]))
}

/** `dealgate keys remove <access key id>`: removes a key pair. It is refused immediately, also in presigned URLs. */
export async function removeKey(config: Config, accessKeyId: string): Promise<Changed> {
  const file = credentialsPath(config)
  await changeCredentials(file, (identities) => {
    const left = identities.filter((identity) => identity.accessKeyId !== accessKeyId)
    if (left.length === identities.length) throw new Failure(`${file} has no access key id ${accessKeyId}.`)
    return left
  })
  print(config, { accessKeyId, file }, `Removed ${accessKeyId} from ${file}.\n`)
  return { resource: accessKeyId }
}

/** Throws a ConfigError that lists all problems. */
async function readIdentity(own: KeyFlags): Promise<Identity> {
  const problems: string[] = []
  const made = generateKeys()
  const secrets = new SecretReader()
  const rights = own.right?.flatMap((text) => {
    const right = parseRight(text)
    if (!right) problems.push(`--right must have the form read|write|readwrite:bucket[/prefix], not ${text}`)
    return right ?? []
  })
  if ((own.accessKeyId === undefined) !== (own.secretAccessKey === undefined)) {
    problems.push('--access-key-id and --secret-access-key go together: give both, or neither to have a pair made')
  }
  if ((own.accountAccessKey === undefined) !== (own.accountSecretKey === undefined)) {
    problems.push('--account-access-key and --account-secret-key go together')
  }
  if (problems.length > 0) throw new ConfigError(problems)
  const checked = identitySchema.safeParse({
    accessKeyId: own.accessKeyId ?? made.accessKey,
    secretAccessKey: own.secretAccessKey === undefined ? made.secretKey : await secrets.read(own.secretAccessKey),
    account: own.accountAccessKey && {
      accessKey: own.accountAccessKey,
      secretKey: await secrets.read(own.accountSecretKey ?? ''),
    },
    rights,
    actions: own.allow,
  })
  secrets.close()
  if (checked.success) return checked.data
  throw new ConfigError(checked.error.issues.map(({ path, message }) => `${placeOf(path).slice(1)} ${message}`))
}

/** Reads `-` as the next line of standard input, because other users of the machine can see command lines. */
export class SecretReader {
  #lines: AsyncIterator<string> | undefined
  #close = () => {}

  async read(given: string): Promise<string> {
    if (given !== '-') return given
    if (!this.#lines) {
      const reader = createInterface({ input: process.stdin })
      this.#lines = reader[Symbol.asyncIterator]()
      this.#close = () => reader.close()
    }
    const { value, done } = await this.#lines.next()
    return done ? '' : value
  }

  close(): void {
    this.#close()
  }
}

function shown({ accessKeyId, account, rights, actions }: Identity) {
  return { accessKeyId, account: account?.accessKey, rights, actions }
}

export function columns(rows: readonly (readonly string[])[]): string {
  const widths = rows[0]?.map((_, i) => Math.max(...rows.map((row) => row[i]?.length ?? 0))) ?? []
  return rows
    .map(
      (row) =>
        `${row
          .map((cell, i) => cell.padEnd(widths[i] ?? 0))
          .join('  ')
          .trimEnd()}\n`,
    )
    .join('')
}

/** Parses `read:photos/2024/`; undefined for another form. The schema of identities validates bucket and prefix. */
function parseRight(text: string): Right | undefined {
  const [, access, bucket = '', prefix] = /^(read|write|readwrite):([^/]+)(?:\/(.*))?$/s.exec(text) ?? []
  if (access === undefined) return undefined
  return { bucket, ...(prefix ? { prefix } : {}), access: access as Right['access'] }
}

/** Formats rights as parseRight parses them, followed by the actions. */
function formatRights({ rights, actions = [] }: Pick<Identity, 'rights' | 'actions'>): string {
  if (rights === undefined) return 'all that the account may'
  const texts = [
    ...rights.map(({ bucket, prefix, access }) => `${access}:${bucket}${prefix === undefined ? '' : `/${prefix}`}`),
    ...actions.map((action) => `allow:${action}`),
  ]
  return texts.length === 0 ? 'none' : texts.join(' ')
}

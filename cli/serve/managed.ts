import { S3Error } from '../../common/errors/s3-error.js'
import type { Logger } from '../../common/log.js'
import type { AccountStore } from '../../plugins/accounts/index.js'
import type { KeyStore } from '../../plugins/keys/key-store.js'
import type { AccountRegistry } from '../../services/gateway/accounts/account-registry.js'
import { Failure } from '../command.js'
import type { Config } from '../config/config.js'
import { changeCredentials, credentialsPath, readCredentials } from '../keys/credentials-file.js'
import { generateKeys } from '../keys/keys.js'
import type { CredentialsChecks } from '../process/identities-file.js'
import { type Owner, openOwner } from './owner.js'

/** Loads what opens the database of the gateway when it is needed. */
const accounts = () => import('../keys/accounts.js')

interface ManagedOptions {
  /** The configuration in force. */
  readonly config: () => Config
  /** Checks by which the server follows the credentials file, with the owner in force. */
  readonly checks: () => CredentialsChecks & { readonly owner: string }
  readonly log: Logger
}

/** What an operator manages by calls. */
export interface Managed {
  /** The key pairs in the credentials file, which every process of the server follows. */
  readonly keys: KeyStore
  /** The accounts of the embedded gateway, in its data folder, which it follows; undefined with another gateway. */
  readonly accounts: AccountStore | undefined
  /** The owner of the server at the embedded services. */
  readonly owner: Owner
  close(): void
}

export function openManaged(options: ManagedOptions): Managed {
  const registry = new OpenedAccounts(options)
  const embedded = options.config().gatewayUrl === undefined
  return {
    keys: keyStore(options, registry),
    accounts: embedded ? accountStore(options, registry) : undefined,
    owner: openOwner(options.config(), () => options.checks().owner),
    close: () => registry.close(),
  }
}

/** The accounts of the embedded gateway, whose database is opened once. */
class OpenedAccounts {
  readonly #options: ManagedOptions
  #registry: Promise<AccountRegistry> | undefined

  constructor(options: ManagedOptions) {
    this.#options = options
  }

  async use<T>(work: (registry: AccountRegistry) => Promise<T>): Promise<T> {
    const { openAccounts, withFailures } = await accounts()
    const { config, log } = this.#options
    return inWords(log, async () => {
      this.#registry ??= openAccounts(config(), { create: false }).catch((error: unknown) => {
        this.#registry = undefined
        throw error
      })
      const registry = await this.#registry
      return withFailures(() => work(registry))
    })
  }

  close(): void {
    this.#registry?.then((registry) => registry.close()).catch(() => {})
    this.#registry = undefined
  }
}

function keyStore({ config, checks, log }: ManagedOptions, registry: OpenedAccounts): KeyStore {
  return {
    owner: () => checks().owner,
    all: () => inWords(log, () => readCredentials(credentialsPath(config()))),
    change: (edit) =>
      inWords(log, async () => {
        let outcome: { readonly of: ReturnType<typeof edit>[1] } | undefined
        const change = (present: Parameters<typeof edit>[0]) => {
          const [next, of] = edit(present)
          outcome = { of }
          return next
        }
        await changeCredentials(credentialsPath(config()), change, checks())
        if (outcome === undefined) throw new Error('the credentials file was changed without its edit')
        return outcome.of
      }),
    async accountSecret(accessKey) {
      if (config().gatewayUrl !== undefined) return undefined
      const all = await registry.use((accounts) => accounts.all())
      return all.find((account) => account.isIamUser && account.accessKey === accessKey)?.secretKey
    },
  }
}

function accountStore({ config, checks, log }: ManagedOptions, registry: OpenedAccounts): AccountStore {
  const file = () => credentialsPath(config())
  const isThere = async (accessKey: string) =>
    (await registry.use((accounts) => accounts.all())).some((account) => account.accessKey === accessKey)
  async function requireThere(accessKey: string): Promise<void> {
    if (await isThere(accessKey)) return
    throw new S3Error('NoSuchEntity', { message: 'There is no account with this access key.' })
  }
  return {
    async all() {
      const { shownAccount } = await accounts()
      return (await registry.use((accounts) => accounts.all())).map(shownAccount)
    },
    async add(accessKey, name) {
      if (await isThere(accessKey)) {
        throw new S3Error('EntityAlreadyExists', { message: 'There is an account with this access key already.' })
      }
      const { requireUnused } = await accounts()
      await inWords(log, () => requireUnused(file(), accessKey))
      const pair = { accessKey, secretKey: generateKeys().secretKey }
      return (await registry.use((accounts) => accounts.add(name, pair))).secretKey
    },
    async rotate(accessKey) {
      if (config().state !== undefined) {
        throw new S3Error('NotImplemented', {
          message: 'Several servers share the state of this one and log in with the same keys: change them by hand.',
        })
      }
      await requireThere(accessKey)
      const { giveSecret } = await accounts()
      const { secretKey } = (await registry.use((accounts) => accounts.rotate(accessKey))).after
      // The account has its new secret, which no later answer has.
      const keys = await giveSecret(file(), { accessKey, secretKey }, checks()).catch((err) => {
        log.error({ err, account: accessKey }, 'the credentials file has the former secret of an account: rotate again')
        return []
      })
      return { secretKey, keys }
    },
    async setQuota(accessKey, change) {
      await requireThere(accessKey)
      return registry.use(async (accounts) => ({
        before: await accounts.quota(accessKey),
        after: await accounts.quota(accessKey, change),
      }))
    },
    async remove(accessKey) {
      await requireThere(accessKey)
      const { keysActingAs } = await accounts()
      const keys = await inWords(log, () => keysActingAs(file(), accessKey))
      await registry.use((accounts) => accounts.remove(accessKey))
      return keys
    },
  }
}

/** Says by an S3Error what cannot be done. What the machine is the reason of stands in the log alone. */
async function inWords<T>(log: Logger, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    if (error.cause instanceof S3Error) throw error.cause
    if (error.cause instanceof RangeError) throw new S3Error('InvalidRequest', { message: error.message })
    log.error({ reason: error.message }, 'key pairs or accounts cannot be read or changed')
    throw new S3Error('InvalidRequest', {
      message: 'This cannot be read or changed now, and nothing has changed: the log of the server has the reason.',
    })
  }
}

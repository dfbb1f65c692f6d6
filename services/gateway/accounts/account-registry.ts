import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { requireUsableVersion } from '../../../common/files/data-version.js'
import { makePrivateFolder } from '../../../common/files/private-file.js'
import { Clock, rfc3339 } from '../../clock.js'
import { explained } from '../../folder-lock.js'
import { silentLog } from '../../log.js'
import type { Database } from '../../store/database.js'
import { openStore } from '../../store/open.js'
import { GatewayError } from '../errors.js'
import { type GatewayTables, indexSchema } from '../index-schema.js'
import { type AccountQuota, NO_QUOTA, type Usage } from '../store/quotas.js'
import { INDEX_FILE } from '../store/schema.js'
import type { Account, ListedAccount } from './accounts.js'
import { checkChosenPair, type KeyPair, newPair, newSecret } from './key-pair.js'

/** What an account may store, and what it stores. */
interface AccountStanding {
  readonly quota: AccountQuota
  readonly usage: Usage
}

/**
 * The accounts of a data folder, for a program beside the gateway: it may run or not, and follows every change at once.
 * Each change is one transaction. Methods throw RangeError with a message for the user.
 */
export interface AccountRegistry {
  all(): Promise<readonly (ListedAccount & AccountStanding)[]>
  /** @param pair default: a new one */
  add(name: string, pair?: KeyPair): Promise<Account>
  /** Refuses while the account owns buckets, and for the first account. */
  remove(accessKey: string): Promise<Account>
  /** Replaces the secret key; the access key stays. Returns the account before and after. */
  rotate(accessKey: string): Promise<{ readonly before: Account; readonly after: Account }>
  /**
   * What the account may store, and what it stores.
   * @param change new bounds; those that are absent stay
   */
  quota(accessKey: string, change?: Partial<AccountQuota>): Promise<AccountStanding>
  close(): Promise<void>
}

export function hasAccounts(data: string): boolean {
  return existsSync(join(data, 'gateway', INDEX_FILE))
}

/**
 * Opens the accounts in the data folder of the services, and creates it if necessary.
 * @param database URL of the PostgreSQL database that the gateway uses instead of SQLite
 * @throws DataFolderError when a file or folder cannot be used
 */
export async function openAccountRegistry(data: string, database?: string): Promise<AccountRegistry> {
  const folder = join(data, 'gateway')
  try {
    requireUsableVersion(data)
    makePrivateFolder(folder)
    return registryOf(await openStore(indexSchema, { file: join(folder, INDEX_FILE), database }, silentLog))
  } catch (error) {
    throw explained(folder, error)
  }
}

function registryOf(db: Database<GatewayTables>): AccountRegistry {
  const clock = new Clock()
  const change = <T>(work: (tables: GatewayTables) => Promise<T>): Promise<T> =>
    db.transaction(work).catch((error: unknown) => {
      throw error instanceof GatewayError ? new RangeError(error.message) : error
    })
  return {
    async all() {
      const accounts = await db.read.accounts.all()
      return Promise.all(accounts.map(async (account) => ({ ...account, ...(await standing(db.read, account.id)) })))
    },
    async add(name, pair = newPair()) {
      checkChosenPair(pair)
      return change(({ accounts }) => accounts.add({ ...pair, name }, rfc3339(clock.now())))
    },
    remove: (accessKey) =>
      change(async (tables) => {
        const account = await mustFind(tables, accessKey)
        await tables.accounts.remove(account.id)
        await tables.quotas.set(account.id, NO_QUOTA)
        return account
      }),
    rotate: (accessKey) =>
      change(async (tables) => {
        const before = await mustFind(tables, accessKey)
        const pair = { accessKey, secretKey: newSecret() }
        return { before, after: await tables.accounts.rotate(before.id, before, pair) }
      }),
    quota: (accessKey, asked = {}) =>
      change(async (tables) => {
        const { id } = await mustFind(tables, accessKey)
        if (Object.keys(asked).length > 0) {
          const { quota } = await standing(tables, id)
          await tables.quotas.set(id, { ...quota, ...asked })
        }
        return standing(tables, id)
      }),
    close: () => db.close(),
  }
}

async function mustFind({ accounts }: GatewayTables, accessKey: string): Promise<Account> {
  const account = await accounts.find(accessKey)
  if (account === undefined) throw new RangeError(`There is no account with the access key ${accessKey}.`)
  return account
}

async function standing({ quotas }: GatewayTables, id: number): Promise<AccountStanding> {
  return { quota: { ...NO_QUOTA, ...(await quotas.of(id)) }, usage: await quotas.usage(id) }
}

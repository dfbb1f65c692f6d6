import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { requireUsableVersion } from '../../../common/files/data-version.js'
import { makePrivateFolder } from '../../../common/files/private-file.js'
import { Clock, rfc3339 } from '../../clock.js'
import { inTransaction } from '../../database.js'
import { explained } from '../../folder-lock.js'
import { openIndex } from '../assemble.js'
import { GatewayError } from '../errors.js'
import { INDEX_FILE } from '../store/schema.js'
import {
  type Account,
  type AccountQuota,
  Accounts,
  type AccountUsage,
  type ListedAccount,
  NO_QUOTA,
  Quotas,
} from './accounts.js'
import { checkChosenPair, type KeyPair, newPair, newSecret } from './key-pair.js'

export type { AccountQuota, ListedAccount } from './accounts.js'

/** What an account may store, and what it stores. */
export interface AccountStanding {
  readonly quota: AccountQuota
  readonly usage: AccountUsage
}

/**
 * The accounts of a data folder, for a program beside the gateway: it may run or not, and follows every change at once.
 * Each change is one transaction. Methods throw RangeError with a message for the user.
 */
export interface AccountBook {
  all(): readonly (ListedAccount & AccountStanding)[]
  /** @param pair default: a new one */
  add(name: string, pair?: KeyPair): Account
  /** Refuses while the account owns buckets, and for the first account. */
  remove(accessKey: string): Account
  /** Replaces the secret key; the access key stays. Returns the account before and after. */
  rotate(accessKey: string): { readonly before: Account; readonly after: Account }
  /**
   * What the account may store, and what it stores.
   * @param change new bounds; those that are absent stay
   */
  quota(accessKey: string, change?: Partial<AccountQuota>): AccountStanding
  close(): void
}

export function hasAccounts(data: string): boolean {
  return existsSync(join(data, 'gateway', INDEX_FILE))
}

/**
 * Opens the accounts in the data folder of the services, and creates it if necessary.
 * @throws DataFolderError when a file or folder cannot be used
 */
export function openAccountBook(data: string): AccountBook {
  const folder = join(data, 'gateway')
  try {
    requireUsableVersion(data)
    return bookOf(folder)
  } catch (error) {
    throw explained(folder, error)
  }
}

function bookOf(folder: string): AccountBook {
  makePrivateFolder(folder)
  const db = openIndex(folder)
  const accounts = new Accounts(db)
  const quotas = new Quotas(db)
  const clock = new Clock()
  const change = <T>(work: () => T): T => asRangeError(() => inTransaction(db, work))
  const mustFind = (accessKey: string): Account => {
    const account = accounts.find(accessKey)
    if (account === undefined) throw new RangeError(`There is no account with the access key ${accessKey}.`)
    return account
  }
  const standing = (id: number) => ({ quota: { ...NO_QUOTA, ...quotas.of(id) }, usage: quotas.usage(id) })
  return {
    all: () => accounts.all().map((account) => ({ ...account, ...standing(account.id) })),
    add(name, pair = newPair()) {
      checkChosenPair(pair)
      return change(() => accounts.add({ ...pair, name }, rfc3339(clock.now())))
    },
    remove: (accessKey) =>
      change(() => {
        const account = mustFind(accessKey)
        accounts.remove(account.id)
        quotas.set(account.id, NO_QUOTA)
        return account
      }),
    rotate: (accessKey) =>
      change(() => {
        const before = mustFind(accessKey)
        return { before, after: accounts.rotate(before.id, before, { accessKey, secretKey: newSecret() }) }
      }),
    quota: (accessKey, asked = {}) =>
      change(() => {
        const { id } = mustFind(accessKey)
        if (Object.keys(asked).length > 0) quotas.set(id, { ...standing(id).quota, ...asked })
        return standing(id)
      }),
    close: () => db.close(),
  }
}

function asRangeError<T>(work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw error instanceof GatewayError ? new RangeError(error.message) : error
  }
}

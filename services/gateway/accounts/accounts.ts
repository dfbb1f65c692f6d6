import { randomBytes } from 'node:crypto'
import type { MaybePromise } from '../../../common/maybe-promise.js'
import { type Connection, recent, statements } from '../../store/database.js'
import { GatewayError } from '../errors.js'
import { isText } from '../store/buckets.js'
import { checkPair, isSamePair, type KeyPair } from './key-pair.js'

/**
 * Id of the first account, which the gateway makes at its first start. It owns what was there before other accounts.
 */
export const FIRST = 1

export interface Account extends KeyPair {
  /** Never reused. */
  readonly id: number
  /** 64 hex digits; stays when the keys change. */
  readonly canonicalId: string
  readonly name: string
  /** False for the first account alone, which may change both of its keys and control the storage network. */
  readonly isIamUser: boolean
  /** RFC 3339, nanoseconds. */
  readonly created: string
}

export interface ListedAccount extends Account {
  readonly buckets: number
}

interface NewAccount extends KeyPair {
  readonly name: string
  /** The user of the task platform that it belongs to. */
  readonly user?: string
}

/** Matches no account: an unknown access key is compared with it, which takes as long as with a known one. */
const NO_PAIR: KeyPair = { accessKey: '', secretKey: '' }

const COLUMNS =
  'id, access_key AS "accessKey", secret_key AS "secretKey", canonical_id AS "canonicalId", name, iam, created FROM accounts'

const SEQUENCE = "pg_get_serial_sequence('accounts', 'id')"

/**
 * The number of a new account, which none had before, and which is not that of the first one. Setting a sequence could
 * set it back behind a number that another transaction has taken.
 */
const nextId = {
  sqlite: `(SELECT max(coalesce(max(seq), 0), ${FIRST}) + 1 FROM sqlite_sequence WHERE name = 'accounts')`,
  postgres: `(
    SELECT CASE WHEN id > ${FIRST} THEN id ELSE nextval(${SEQUENCE}) END FROM (SELECT nextval(${SEQUENCE}) AS id) AS next
  )`,
}

type StoredAccount = Omit<Account, 'isIamUser'> & { readonly iam: number }

/**
 * The table of accounts. Other processes may change it at any time, so every call looks for changes. Call writing
 * methods inside a transaction.
 */
export class Accounts {
  readonly #sql

  constructor(connection: Connection) {
    this.#sql = statements(connection, {
      byKey: `SELECT ${COLUMNS} WHERE access_key = ?`,
      byId: `SELECT ${COLUMNS} WHERE id = ?`,
      byUser: `SELECT ${COLUMNS} WHERE "user" = ?`,
      userOf: 'SELECT "user" FROM accounts WHERE id = ?',
      all: `SELECT (SELECT count(*) FROM buckets WHERE owner = accounts.id) AS buckets, ${COLUMNS} ORDER BY id`,
      add: `
      INSERT INTO accounts (id, access_key, secret_key, canonical_id, name, iam, created, "user")
      VALUES (coalesce(?, ${nextId[connection.engine]}), ?, ?, ?, ?, ?, ?, ?)
    `,
      remove: 'DELETE FROM accounts WHERE id = ?',
      setPair: 'UPDATE accounts SET access_key = ?, secret_key = ? WHERE id = ?',
      configured: 'SELECT configured FROM accounts WHERE id = ?',
      setConfigured: 'UPDATE accounts SET configured = ? WHERE id = ?',
      bucket: 'SELECT name FROM buckets WHERE owner = ? ORDER BY name LIMIT 1',
    })
  }

  async find(accessKey: string): Promise<Account | undefined> {
    return isText(accessKey) ? toAccount(await this.#sql.byKey.get<StoredAccount>(accessKey)) : undefined
  }

  get(id: number): MaybePromise<Account | undefined> {
    const row = recent<StoredAccount>(this.#sql.byId, id)
    return row instanceof Promise ? row.then(toAccount) : toAccount(row)
  }

  async ofUser(user: string): Promise<Account | undefined> {
    return toAccount(await this.#sql.byUser.get<StoredAccount>(user))
  }

  /** Id of the user of the task platform that an account belongs to. */
  async userOf(id: number): Promise<string | undefined> {
    return (await this.#sql.userOf.get<{ user: string | null }>(id))?.user ?? undefined
  }

  /** The account of the gateway's own start; undefined before it. */
  async first(): Promise<Account | undefined> {
    return this.get(FIRST)
  }

  async all(): Promise<ListedAccount[]> {
    const rows = await this.#sql.all.all<StoredAccount & { buckets: number }>()
    return rows.map((row) => ({ ...(toAccount(row) as Account), buckets: row.buckets }))
  }

  /**
   * Adds an account. Throws GatewayError when it may not have these keys or another account has the access key.
   * @param created RFC 3339, nanoseconds
   * @param id of the first account; else the next number
   */
  async add({ accessKey, secretKey, name, user }: NewAccount, created: string, id?: typeof FIRST): Promise<Account> {
    checkPair({ accessKey, secretKey })
    await this.#mustBeFree(accessKey)
    const canonicalId = randomBytes(32).toString('hex')
    const iam = id === FIRST ? 0 : 1
    await this.#sql.add.run(id ?? null, accessKey, secretKey, canonicalId, name, iam, created, user ?? null)
    return (await this.find(accessKey)) as Account
  }

  /** Throws GatewayError AccountOwnsBuckets while it does, and FirstAccount for the first one. */
  async remove(id: number): Promise<void> {
    if (id === FIRST) throw new GatewayError('FirstAccount')
    const bucket = await this.#sql.bucket.get<{ name: string }>(id)
    if (bucket !== undefined) throw new GatewayError('AccountOwnsBuckets', { value: bucket.name })
    await this.#sql.remove.run(id)
  }

  /**
   * Replaces the keys of an account. Throws GatewayError WrongCurrentKeys unless `current` is its pair, and others when
   * it may not have `next`.
   */
  async rotate(id: number, current: KeyPair, next: KeyPair): Promise<Account> {
    checkPair(next)
    const account = await this.get(id)
    if (!isSamePair(current, account ?? NO_PAIR)) throw new GatewayError('WrongCurrentKeys')
    if (next.accessKey !== current.accessKey) await this.#mustBeFree(next.accessKey)
    await this.#sql.setPair.run(next.accessKey, next.secretKey, id)
    return (await this.get(id)) as Account
  }

  /** Digest of the pair that was configured when the first account got its keys; null without one. */
  async configured(): Promise<string | null> {
    return (await this.#sql.configured.get<{ configured: string | null }>(FIRST))?.configured ?? null
  }

  async setConfigured(digest: string | null): Promise<void> {
    await this.#sql.setConfigured.run(digest, FIRST)
  }

  async #mustBeFree(accessKey: string): Promise<void> {
    if ((await this.find(accessKey)) !== undefined) throw new GatewayError('AccessKeyTaken')
  }
}

/**
 * The account, if it has exactly these keys; else undefined. Work is the same whichever key is wrong.
 * @param account that has this access key
 */
export function withKeys(pair: KeyPair, account: Account | undefined): Account | undefined {
  return isSamePair(pair, account ?? NO_PAIR) ? account : undefined
}

function toAccount(row: StoredAccount | undefined): Account | undefined {
  if (row === undefined) return undefined
  const { id, accessKey, secretKey, canonicalId, name, iam, created } = row
  return { id, accessKey, secretKey, canonicalId, name, isIamUser: iam === 1, created }
}

/**
 * Accounts. `iam` is 0 for the first one. `configured` is the digest of the pair that the configuration named when the
 * first one got its keys. `user` names the user of the task platform that the account belongs to. `quotas` has what an
 * account may store in all of its buckets.
 */
export const accountSchema = `
  CREATE TABLE IF NOT EXISTS accounts (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    access_key TEXT NOT NULL UNIQUE,
    secret_key TEXT NOT NULL,
    canonical_id TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    iam INTEGER NOT NULL,
    created TEXT NOT NULL,
    configured TEXT,
    user TEXT UNIQUE
  ) STRICT;
  CREATE TABLE IF NOT EXISTS quotas (
    account INTEGER PRIMARY KEY,
    bytes INTEGER, -- NULL: no bound
    objects INTEGER,
    uploads INTEGER
  ) STRICT;
`

import { randomBytes } from 'node:crypto'
import { type Database, statements } from '../../database.js'
import { GatewayError } from '../errors.js'
import { checkPair, isSamePair, type KeyPair } from './key-pair.js'

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
  'id, access_key AS accessKey, secret_key AS secretKey, canonical_id AS canonicalId, name, iam, created FROM accounts'

/**
 * The table of accounts. Other processes may change it at any time, so every call reads it. Call writing methods inside
 * a transaction.
 */
export class Accounts {
  readonly #sql

  constructor(db: Database) {
    this.#sql = statements(db, {
      byKey: `SELECT ${COLUMNS} WHERE access_key = ?`,
      byId: `SELECT ${COLUMNS} WHERE id = ?`,
      byUser: `SELECT ${COLUMNS} WHERE user = ?`,
      userOf: 'SELECT user FROM accounts WHERE id = ?',
      all: `SELECT (SELECT count(*) FROM buckets WHERE owner = accounts.id) AS buckets, ${COLUMNS} ORDER BY id`,
      add: `
      INSERT INTO accounts (id, access_key, secret_key, canonical_id, name, iam, created, user)
      VALUES (coalesce(?, (SELECT max(coalesce(max(seq), 0), ${FIRST}) + 1 FROM sqlite_sequence WHERE name = 'accounts')),
        ?, ?, ?, ?, ?, ?, ?)
    `,
      remove: 'DELETE FROM accounts WHERE id = ?',
      setPair: 'UPDATE accounts SET access_key = ?, secret_key = ? WHERE id = ?',
      configured: 'SELECT configured FROM accounts WHERE id = ?',
      setConfigured: 'UPDATE accounts SET configured = ? WHERE id = ?',
      buckets: 'SELECT name FROM buckets WHERE owner = ? ORDER BY name LIMIT ?',
    })
  }

  find(accessKey: string): Account | undefined {
    return toAccount(this.#sql.byKey.get(accessKey))
  }

  get(id: number): Account | undefined {
    return toAccount(this.#sql.byId.get(id))
  }

  ofUser(user: string): Account | undefined {
    return toAccount(this.#sql.byUser.get(user))
  }

  /** Id of the user of the task platform that an account belongs to. */
  userOf(id: number): string | undefined {
    return this.#sql.userOf.get(id)?.user ?? undefined
  }

  /** The account of the gateway's own start; undefined before it. */
  first(): Account | undefined {
    return this.get(FIRST)
  }

  all(): ListedAccount[] {
    return this.#sql.all.all().map((row) => ({ ...(toAccount(row) as Account), buckets: row.buckets }))
  }

  /**
   * Returns the account with exactly these keys. Work is the same whichever key is wrong; undefined then.
   */
  withKeys(pair: KeyPair): Account | undefined {
    const account = this.find(pair.accessKey)
    return isSamePair(pair, account ?? NO_PAIR) ? account : undefined
  }

  /**
   * Adds an account. Throws GatewayError when it may not have these keys or another account has the access key.
   * @param created RFC 3339, nanoseconds
   * @param id of the first account; else the next number
   */
  add({ accessKey, secretKey, name, user }: NewAccount, created: string, id?: typeof FIRST): Account {
    checkPair({ accessKey, secretKey })
    this.#mustBeFree(accessKey)
    const canonicalId = randomBytes(32).toString('hex')
    const iam = id === FIRST ? 0 : 1
    this.#sql.add.run(id ?? null, accessKey, secretKey, canonicalId, name, iam, created, user ?? null)
    return this.find(accessKey) as Account
  }

  /** Throws GatewayError AccountOwnsBuckets while it does, and FirstAccount for the first one. */
  remove(id: number): void {
    if (id === FIRST) throw new GatewayError('FirstAccount')
    const names = this.bucketsOf(id, 1)
    if (names.length > 0) throw new GatewayError('AccountOwnsBuckets', { value: names[0] as string })
    this.#sql.remove.run(id)
  }

  /**
   * Replaces the keys of an account. Throws GatewayError WrongCurrentKeys unless `current` is its pair, and others when
   * it may not have `next`.
   */
  rotate(id: number, current: KeyPair, next: KeyPair): Account {
    checkPair(next)
    const account = this.get(id)
    if (!isSamePair(current, account ?? NO_PAIR)) throw new GatewayError('WrongCurrentKeys')
    if (next.accessKey !== current.accessKey) this.#mustBeFree(next.accessKey)
    this.#sql.setPair.run(next.accessKey, next.secretKey, id)
    return this.get(id) as Account
  }

  /** Digest of the pair that was configured when the first account got its keys; null without one. */
  get configured(): string | null {
    return this.#sql.configured.get(FIRST)?.configured ?? null
  }

  set configured(digest: string | null) {
    this.#sql.setConfigured.run(digest, FIRST)
  }

  bucketsOf(id: number, limit: number): string[] {
    return this.#sql.buckets.all(id, limit).map(({ name }) => name as string)
  }

  #mustBeFree(accessKey: string): void {
    if (this.find(accessKey) !== undefined) throw new GatewayError('AccessKeyTaken')
  }
}

// biome-ignore lint/suspicious/noExplicitAny: rows are untyped; the columns are those above
function toAccount(row: any): Account | undefined {
  if (row === undefined) return undefined
  const { id, accessKey, secretKey, canonicalId, name, iam, created } = row
  return { id, accessKey, secretKey, canonicalId, name, isIamUser: iam === 1, created }
}

/** What an account may store in all of its buckets; null for no bound. */
export interface AccountQuota {
  readonly bytes: number | null
  readonly objects: number | null
  /** Multipart uploads under way, which the clients of the gateway count. */
  readonly uploads: number | null
}

export const NO_QUOTA: AccountQuota = Object.freeze({ bytes: null, objects: null, uploads: null })

/** Objects in deals alone have no bytes here; removed ones have bytes while a pending deal reads them. */
export interface AccountUsage {
  readonly bytes: number
  readonly objects: number
}

/**
 * The table of quotas. Other processes may change it at any time, so every call reads it. Call `set`, and what must
 * hold with a write, inside a transaction.
 */
export class Quotas {
  readonly #sql

  constructor(db: Database) {
    this.#sql = statements(db, {
      find: 'SELECT bytes, objects, uploads FROM quotas WHERE account = ?',
      set: 'INSERT OR REPLACE INTO quotas (account, bytes, objects, uploads) VALUES (?, ?, ?, ?)',
      remove: 'DELETE FROM quotas WHERE account = ?',
      usage:
        'SELECT total(objects) AS objects, total(bytes) + (SELECT total(bytes) FROM retained WHERE account = ?1) AS bytes FROM buckets WHERE owner = ?1',
    })
  }

  of(account: number): AccountQuota | undefined {
    return this.#sql.find.get(account)
  }

  usage(account: number): AccountUsage {
    return this.#sql.usage.get(account) as AccountUsage
  }

  set(account: number, { bytes, objects, uploads }: AccountQuota): void {
    if (bytes === null && objects === null && uploads === null) this.#sql.remove.run(account)
    else this.#sql.set.run(account, bytes, objects, uploads)
  }

  /**
   * Throws GatewayError QuotaExceeded if the account would store more than it may, unless it stores less than before.
   */
  mustHaveRoom(account: number, quota: AccountQuota, more: AccountUsage): void {
    const { bytes, objects } = this.usage(account)
    check('bytes', quota.bytes, bytes, more.bytes)
    check('objects', quota.objects, objects, more.objects)
  }
}

function check(what: string, most: number | null, present: number, more: number): void {
  if (most === null || more <= 0 || present + more <= most) return
  throw new GatewayError('QuotaExceeded', {
    value: `The quota of the account is ${most} ${what}. It has ${present}, and this would add ${more}: remove objects, or ask for a larger quota.`,
  })
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

/** Names of the columns of a table; none when it does not exist. */
export function columnsOf(db: Database, table: string): string[] {
  return db
    .prepare(`SELECT name FROM pragma_table_info('${table}')`)
    .all()
    .map(({ name }) => name as string)
}

/**
 * Id of the first account, which the gateway makes at its first start. It owns what was there before other accounts.
 */
export const FIRST = 1

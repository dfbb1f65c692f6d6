import { type Database, tableOf } from '../store/database.js'
import { hashPassword, newPassword } from './password.js'

/** A user of the platform: a client, and a provider when storage providers of the network are theirs. */
export interface User {
  readonly id: number
  /** In lower case. */
  readonly email: string
  readonly registered: number
  /** How often the password was changed. */
  readonly passwordChanges: number
}

/** How the other services act at a task platform for its users. */
export interface PlatformLogin {
  /** Base URL of the platform, without a slash at the end. */
  readonly url: string
  /**
   * A JWT of a user; undefined when the platform has no such user.
   * @param user id of a PlatformUser; undefined for the first user, or elsewhere the one whose API key is configured
   */
  tokenFor(user: string | undefined): Promise<string | undefined>
}

/** A user as the other services know them. */
export interface PlatformUser {
  /** Never given to another user, of another platform or after the data were lost. */
  readonly id: string
  readonly name: string
  /** True for the user that the platform makes at its first start. */
  readonly isFirst: boolean
}

/** The users of a task platform. A platform at which no service can act for them has no login. */
export interface PlatformUsers {
  readonly login?: PlatformLogin
  /** The user that a JWT of the platform belongs to; undefined when it is not valid. */
  userOf(token: string): Promise<PlatformUser | undefined>
}

interface KnownUser extends User {
  readonly password: string
}

/** Id of the user that the first start makes, who has the embedded network's providers. */
export const FIRST_USER = 1

const COLUMNS = 'id, email, password, registered, password_changes AS "passwordChanges" FROM users'

/** The table of users. Call writing methods inside a transaction. */
export class Users extends tableOf({
  byId: `SELECT ${COLUMNS} WHERE id = ?`,
  byEmail: `SELECT ${COLUMNS} WHERE email = ?`,
  // The first id is 1: the counter of the table, which PostgreSQL raises also for what is rolled back, is not used.
  add: 'INSERT INTO users (id, email, password, registered) SELECT coalesce(max(id), 0) + 1, ?, ?, ? FROM users',
  setPassword: 'UPDATE users SET password = ?, password_changes = password_changes + 1 WHERE id = ?',
}) {
  /**
   * Changes the password; tokens of earlier sign-ins are not valid any more.
   * @param password argon2id hash
   */
  async setPassword(id: number, password: string): Promise<void> {
    await this.sql.setPassword.run(password, id)
  }

  async get(id: number): Promise<User | undefined> {
    const known = await this.sql.byId.get<KnownUser>(id)
    return known && withoutPassword(known)
  }

  /** @param email in any case */
  find(email: string): Promise<KnownUser | undefined> {
    return this.sql.byEmail.get<KnownUser>(email.toLowerCase())
  }

  /**
   * Adds a user. Throws when the e-mail address is taken.
   * @param email without regard to case and to spaces around it
   * @param password argon2id hash
   * @param registered Unix seconds
   */
  async add(email: string, password: string, registered: number): Promise<void> {
    await this.sql.add.run(email.trim().toLowerCase(), password, registered)
  }
}

/** True when the storage providers are the user's. The first user has all providers of the network. */
export function hasProviders({ id }: User): boolean {
  return id === FIRST_USER
}

function withoutPassword({ id, email, registered, passwordChanges }: KnownUser): User {
  return { id, email, registered, passwordChanges }
}

/** Adds the number of changes of the password: tokens of a sign-in name it, and die with the next change. */
export const passwordChangesSchema = `
  ALTER TABLE users ADD COLUMN password_changes INTEGER NOT NULL DEFAULT 0;
`

/**
 * Users sign in with an e-mail address, in lower case. `password` is an argon2id hash. `settings` holds what the
 * platform makes at its first start. Times are Unix seconds.
 */
export const userSchema = `
  CREATE TABLE users (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    email TEXT NOT NULL UNIQUE,
    password TEXT NOT NULL,
    registered INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE settings (
    name TEXT PRIMARY KEY,
    value BLOB NOT NULL
  ) STRICT;
`

const EMAIL = 'owner@localhost'

export interface SignIn {
  readonly email: string
  readonly password: string
}

/**
 * Makes the first user when there is none. Durable on return. The password is not kept: this is the only time that
 * anything tells it.
 * @param seconds the time, Unix seconds
 * @returns undefined when the user existed
 */
export async function makeFirstUser(
  db: Database<{ readonly users: Users }>,
  seconds: number,
): Promise<SignIn | undefined> {
  if ((await db.read.users.get(FIRST_USER)) !== undefined) return undefined
  const password = newPassword()
  const hashed = await hashPassword(password)
  const made = await db.transaction(async ({ users }) => {
    // Another call may have made it since.
    if ((await users.get(FIRST_USER)) !== undefined) return false
    await users.add(EMAIL, hashed, seconds)
    return true
  })
  return made ? { email: EMAIL, password } : undefined
}

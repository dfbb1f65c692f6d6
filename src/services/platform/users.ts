import { type Database, statements, type Writer } from '../database.js'
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

const COLUMNS = 'id, email, password, registered, password_changes AS passwordChanges FROM users'

/** The table of users. Call writing methods inside a transaction. */
export class Users {
  readonly #sql

  constructor(db: Database) {
    this.#sql = statements(db, {
      byId: `SELECT ${COLUMNS} WHERE id = ?`,
      byEmail: `SELECT ${COLUMNS} WHERE email = ?`,
      add: 'INSERT INTO users (id, email, password, registered) VALUES (?, ?, ?, ?)',
      all: `SELECT ${COLUMNS} ORDER BY id`,
      setPassword: 'UPDATE users SET password = ?, password_changes = password_changes + 1 WHERE id = ?',
    })
  }

  all(): readonly User[] {
    return (this.#sql.all.all() as KnownUser[]).map(withoutPassword)
  }

  /**
   * Changes the password; tokens of earlier sign-ins are not valid any more.
   * @param password argon2id hash
   */
  setPassword(id: number, password: string): void {
    this.#sql.setPassword.run(password, id)
  }

  get(id: number): User | undefined {
    const known = this.#sql.byId.get(id) as KnownUser | undefined
    return known && withoutPassword(known)
  }

  /** @param email in any case */
  find(email: string): KnownUser | undefined {
    return this.#sql.byEmail.get(email.toLowerCase()) as KnownUser | undefined
  }

  /**
   * Adds a user. Throws when the e-mail address or the id is taken, and for another than the first user while there is
   * none: the row would get its id, and with it the storage providers.
   * @param email without regard to case and to spaces around it
   * @param password argon2id hash
   * @param registered Unix seconds
   * @param id of the first user; else the next number
   */
  add(email: string, password: string, registered: number, id?: typeof FIRST_USER): void {
    if (id === undefined && this.get(FIRST_USER) === undefined) {
      throw new RangeError('The task platform has no user yet. Start it once, so that it makes its first user.')
    }
    this.#sql.add.run(id ?? null, email.trim().toLowerCase(), password, registered)
  }
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
export async function makeFirstUser(users: Users, writer: Writer, seconds: number): Promise<SignIn | undefined> {
  if (users.get(FIRST_USER) !== undefined) return undefined
  const password = newPassword()
  const hashed = await hashPassword(password)
  const made = await writer.run(() => {
    // Another call may have made it since.
    if (users.get(FIRST_USER) !== undefined) return false
    users.add(EMAIL, hashed, seconds, FIRST_USER)
    return true
  })
  return made ? { email: EMAIL, password } : undefined
}

import type { Database } from '../../database.js'

/** A user of the platform: a client, and a provider when storage providers of the network are theirs. */
export interface User {
  /** Never given to another user. */
  readonly id: number
  /** In lower case. */
  readonly email: string
  /** Unix seconds. */
  readonly registered: number
  /** How often the password was changed. */
  readonly passwordChanges: number
}

export interface KnownUser extends User {
  /** The argon2id hash of the password. */
  readonly password: string
}

/** Id of the user that the first start makes, who has the embedded network's providers. */
export const FIRST_USER = 1

const COLUMNS = 'id, email, password, registered, password_changes AS passwordChanges FROM users'

/** The table of users. Call writing methods inside a transaction. */
export class Users {
  readonly #byId
  readonly #byEmail
  readonly #add
  readonly #all
  readonly #setPassword

  constructor(db: Database) {
    this.#byId = db.prepare(`SELECT ${COLUMNS} WHERE id = ?`)
    this.#byEmail = db.prepare(`SELECT ${COLUMNS} WHERE email = ?`)
    this.#add = db.prepare('INSERT INTO users (id, email, password, registered) VALUES (?, ?, ?, ?)')
    this.#all = db.prepare(`SELECT ${COLUMNS} ORDER BY id`)
    this.#setPassword = db.prepare(
      'UPDATE users SET password = ?, password_changes = password_changes + 1 WHERE id = ?',
    )
  }

  /** In the order of their ids. */
  all(): readonly User[] {
    return (this.#all.all() as KnownUser[]).map(withoutPassword)
  }

  /**
   * Changes the password; tokens of earlier sign-ins are not valid any more.
   * @param password argon2id hash
   */
  setPassword(id: number, password: string): void {
    this.#setPassword.run(password, id)
  }

  get(id: number): User | undefined {
    const known = this.#byId.get(id) as KnownUser | undefined
    return known && withoutPassword(known)
  }

  /** @param email in any case */
  find(email: string): KnownUser | undefined {
    return this.#byEmail.get(email.toLowerCase()) as KnownUser | undefined
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
    this.#add.run(id ?? null, email.trim().toLowerCase(), password, registered)
  }
}

function withoutPassword({ id, email, registered, passwordChanges }: KnownUser): User {
  return { id, email, registered, passwordChanges }
}

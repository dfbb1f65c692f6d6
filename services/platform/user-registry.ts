import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { openBeside } from '../folder-lock.js'
import { silentLog } from '../log.js'
import type { Database } from '../store/database.js'
import { openStore } from '../store/open.js'
import type { ListedApiKey } from './api-keys.js'
import { hashPassword } from './password.js'
import { type PlatformTables, platformSchema } from './store.js'
import { TOKEN_KEY, Tokens } from './tokens.js'
import { FIRST_USER, makeFirstUser, type SignIn, type User } from './users.js'

/** Bounds of a chosen password, characters. */
const MIN_PASSWORD = 8
const MAX_PASSWORD = 1024

const EMAIL = /^[^\s@<>,;:"()[\]\\]{1,64}@[A-Za-z0-9.-]{1,190}$/

/**
 * The users of the task platform in a data folder, for a program beside the platform: it may run or not, and follows
 * every change at once. Each change is one transaction. Methods throw RangeError with a message for the user.
 */
export interface UserRegistry {
  /** See `makeFirstUser` of RunningPlatform. */
  makeFirstUser(): Promise<SignIn | undefined>
  /** A JWT of the first user, as a sign-in gives it; undefined before the platform has started and made the user. */
  tokenOfFirstUser(): Promise<string | undefined>
  add(email: string, password: string): Promise<User>
  /** Changes the password of a user; tokens of earlier sign-ins are not valid any more. */
  setPassword(email: string, password: string): Promise<User>
  apiKeys(email: string): Promise<readonly ListedApiKey[]>
  /**
   * Removes API keys of the user, whose JWTs are not valid any more. Returns what it has removed.
   * @param apikey default: all of them
   */
  revokeApiKeys(email: string, apikey?: string): Promise<readonly ListedApiKey[]>
  close(): Promise<void>
}

/** True when the data folder of the services has a task platform. */
export function hasUsers(data: string): boolean {
  return existsSync(fileIn(data))
}

/**
 * Opens the users in the data folder of the services, which must have a task platform.
 * @param database URL of the PostgreSQL database that the platform uses instead of SQLite
 * @throws DataFolderError when a file or folder cannot be used
 */
export async function openUserRegistry(data: string, database?: string): Promise<UserRegistry> {
  const open = () => openStore({ ...platformSchema, exclusive: false }, { file: fileIn(data), database }, silentLog)
  return registryOf(await (database === undefined ? openBeside(data, open) : open()))
}

function fileIn(data: string): string {
  return join(data, 'platform', 'platform.db')
}

function registryOf(db: Database<PlatformTables>): UserRegistry {
  const { users, apiKeys } = db.read
  return {
    makeFirstUser: () => makeFirstUser(db, now()),
    async tokenOfFirstUser() {
      const [user, key] = await Promise.all([users.get(FIRST_USER), db.read.settings.find(TOKEN_KEY)])
      return user && key && new Tokens(key, db.read).ofSignIn(user)
    },
    async add(email, password) {
      const name = email.trim()
      if (!EMAIL.test(name)) throw new RangeError('The e-mail address of a user has the form name@host.')
      checkPassword(password)
      const hashed = await hashPassword(password)
      return db.transaction(async ({ users }) => {
        // The row would get the number of the first user, and with it the storage providers.
        if ((await users.get(FIRST_USER)) === undefined) {
          throw new RangeError('The task platform has no user yet. Start it once, so that it makes its first user.')
        }
        if ((await users.find(name)) !== undefined) {
          throw new RangeError(`The task platform has a user ${name} already.`)
        }
        await users.add(name, hashed, now())
        return userOf(users, name)
      })
    },
    async setPassword(email, password) {
      await userOf(users, email)
      checkPassword(password)
      const hashed = await hashPassword(password)
      return db.transaction(async ({ users }) => {
        const user = await userOf(users, email)
        await users.setPassword(user.id, hashed)
        return user
      })
    },
    apiKeys: async (email) => apiKeys.ofUser((await userOf(users, email)).id),
    revokeApiKeys: (email, apikey) =>
      db.transaction(async ({ users, apiKeys }) => {
        const { id } = await userOf(users, email)
        const chosen = (await apiKeys.ofUser(id)).filter((key) => apikey === undefined || key.apikey === apikey)
        if (apikey !== undefined && chosen.length === 0) throw new RangeError(`The user has no API key ${apikey}.`)
        for (const key of chosen) await apiKeys.remove(key.apikey, id)
        return chosen
      }),
    close: () => db.close(),
  }
}

function now(): number {
  return Math.floor(Date.now() / 1000)
}

async function userOf(users: PlatformTables['users'], email: string): Promise<User> {
  const user = await users.find(email.trim())
  if (user === undefined) throw new RangeError(`The task platform has no user ${email.trim()}.`)
  return user
}

function checkPassword(password: string): void {
  if (password.length < MIN_PASSWORD || password.length > MAX_PASSWORD) {
    throw new RangeError(`A password has ${MIN_PASSWORD} to ${MAX_PASSWORD} characters.`)
  }
}

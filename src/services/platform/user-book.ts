import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { type Database, inTransaction, openDatabase } from '../database.js'
import { openBeside } from '../folder-lock.js'
import { ApiKeys, type ListedApiKey } from './api-keys.js'
import { hashPassword } from './password.js'
import { migrate } from './store.js'
import { type User, Users } from './users.js'

export type { ListedApiKey } from './api-keys.js'

/** Bounds of a chosen password, characters. */
const MIN_PASSWORD = 8
const MAX_PASSWORD = 1024

const EMAIL = /^[^\s@<>,;:"()[\]\\]{1,64}@[A-Za-z0-9.-]{1,190}$/

/**
 * The users of the task platform in a data folder, for a program beside the platform: it may run or not, and follows
 * every change at once. Each change is one transaction. Methods throw RangeError with a message for the user.
 */
export interface UserBook {
  add(email: string, password: string): Promise<User>
  /** Changes the password of a user; tokens of earlier sign-ins are not valid any more. */
  setPassword(email: string, password: string): Promise<User>
  apiKeys(email: string): readonly ListedApiKey[]
  /**
   * Removes API keys of the user, whose JWTs are not valid any more. Returns what it has removed.
   * @param apikey default: all of them
   */
  revokeApiKeys(email: string, apikey?: string): readonly ListedApiKey[]
  close(): void
}

/** True when the data folder of the services has a task platform. */
export function hasUsers(data: string): boolean {
  return existsSync(fileIn(data))
}

/**
 * Opens the users in the data folder of the services, which must have a task platform.
 * @throws DataFolderError when a file or folder cannot be used
 */
export function openUserBook(data: string): UserBook {
  return openBeside(data, () => bookOf(openDatabase(fileIn(data), '', migrate)))
}

function fileIn(data: string): string {
  return join(data, 'platform', 'platform.db')
}

function bookOf(db: Database): UserBook {
  const users = new Users(db)
  const apiKeys = new ApiKeys(db)
  const mustFind = (email: string): User => {
    const user = users.find(email.trim())
    if (user === undefined) throw new RangeError(`The task platform has no user ${email.trim()}.`)
    return user
  }
  return {
    async add(email, password) {
      const name = email.trim()
      if (!EMAIL.test(name)) throw new RangeError('The e-mail address of a user has the form name@host.')
      checkPassword(password)
      const hashed = await hashPassword(password)
      return inTransaction(db, () => {
        if (users.find(name) !== undefined) throw new RangeError(`The task platform has a user ${name} already.`)
        users.add(name, hashed, Math.floor(Date.now() / 1000))
        return mustFind(name)
      })
    },
    async setPassword(email, password) {
      mustFind(email)
      checkPassword(password)
      const hashed = await hashPassword(password)
      return inTransaction(db, () => {
        const user = mustFind(email)
        users.setPassword(user.id, hashed)
        return user
      })
    },
    apiKeys: (email) => apiKeys.ofUser(mustFind(email).id),
    revokeApiKeys: (email, apikey) =>
      inTransaction(db, () => {
        const { id } = mustFind(email)
        const chosen = apiKeys.ofUser(id).filter((key) => apikey === undefined || key.apikey === apikey)
        if (apikey !== undefined && chosen.length === 0) throw new RangeError(`The user has no API key ${apikey}.`)
        return chosen.filter((key) => apiKeys.remove(key.apikey, id))
      }),
    close: () => db.close(),
  }
}

function checkPassword(password: string): void {
  if (password.length < MIN_PASSWORD || password.length > MAX_PASSWORD) {
    throw new RangeError(`A password has ${MIN_PASSWORD} to ${MAX_PASSWORD} characters.`)
  }
}

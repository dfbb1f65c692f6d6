import type { PlatformContext } from '../context.js'
import { hashPassword, newPassword } from './password.js'
import { FIRST_USER } from './users.js'

const EMAIL = 'owner@localhost'

/** What a person signs in with. */
export interface SignIn {
  readonly email: string
  readonly password: string
}

/**
 * Makes the first user when there is none. Durable on return. The password is not kept: this is the only time that
 * anything tells it.
 * @returns undefined when the user existed
 */
export async function makeFirstUser({
  users,
  writer,
  seconds,
}: Pick<PlatformContext, 'users' | 'writer' | 'seconds'>): Promise<SignIn | undefined> {
  if (users.get(FIRST_USER) !== undefined) return undefined
  const password = newPassword()
  const hashed = await hashPassword(password)
  const made = await writer.run(() => {
    // Another call may have made it since.
    if (users.get(FIRST_USER) !== undefined) return false
    users.add(EMAIL, hashed, seconds(), FIRST_USER)
    return true
  })
  return made ? { email: EMAIL, password } : undefined
}

import { PlatformError } from '../errors.js'
import type { Exchange } from '../http/exchange.js'
import type { Access } from '../http/route.js'
import type { User } from '../users/users.js'

/** Who calls, and with which kind of JWT. */
export interface Caller {
  readonly user: User
  readonly by: 'sign-in' | 'api-key'
}

const BEARER = /^Bearer +(\S+) *$/i

/** The caller by the Authorization header; undefined for an anonymous one. Throws PlatformError 401 or 403. */
export async function callerOf(
  { context, request }: Pick<Exchange, 'context' | 'request'>,
  access: Access,
): Promise<Caller | undefined> {
  const header = request.headers.authorization
  if (access === 'public' || (access === 'optional' && header === undefined)) return undefined
  if (header === undefined) throw unauthorized('Sign in first: send `Authorization: Bearer` and the token.')
  const token = BEARER.exec(header)?.[1]
  const caller = token === undefined ? undefined : await context.tokens.callerOf(token)
  if (caller === undefined) throw unauthorized('The token is not valid or has expired. Get a new one.')
  if (access === 'signed-in' && caller.by !== 'sign-in') {
    throw new PlatformError(403, 'Only the token of a sign-in may do this, not that of an API key.')
  }
  return caller
}

/** The signed-in user, on routes that need one. Throws PlatformError 401 for an anonymous caller. */
export function requireUser({ caller }: Pick<Exchange, 'caller'>): User {
  if (caller === undefined) throw unauthorized('Sign in first: send `Authorization: Bearer` and the token.')
  return caller.user
}

function unauthorized(message: string): PlatformError {
  return new PlatformError(401, message, ['WWW-Authenticate', 'Bearer'])
}

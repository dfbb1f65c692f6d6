import { type Actor, requireToken, S3Error, TokenRefused } from 'dealgate'
import type { TaskParts } from './parts.js'
import type { Use } from './tokens.js'

/** `optional`: without a token the platform shows what is public. */
export type Need = Use | 'optional'

/** The service, and the header with its token in signed requests. */
export const TOKEN = { service: 'task platform', header: 'x-dealgate-platform-authorization' } as const

/**
 * Runs a call with the token of the actor. A stored log-in gets a new token once if the platform refuses the first.
 * @throws S3Error PlatformIdentityRequired without a log-in, UpstreamAuthFailed for a token that is refused
 */
export async function acting<T>(
  parts: TaskParts,
  { identity, bearer }: Actor,
  need: Need,
  run: (token: string | undefined) => Promise<T>,
): Promise<T> {
  if (bearer !== undefined)
    return requireToken(() => run(bearer), 'The task platform refuses the token of the request.')
  const use = need === 'sign-in' ? 'sign-in' : 'any'
  const token = identity && (await parts.tokens.get(identity, use))
  if (!identity || token === undefined) {
    if (need !== 'optional') throw identityRequired(need)
    return requireToken(
      () => run(undefined),
      'The task platform shows this to its users only. Store a log-in: CreatePlatformSession.',
    )
  }
  try {
    return await run(token)
  } catch (error) {
    if (!(error instanceof TokenRefused)) throw error
    const renewed = await parts.tokens.get(identity, use, token)
    if (renewed === undefined) throw identityRequired(need)
    return requireToken(() => run(renewed), 'The task platform refuses the token that it has just issued.')
  }
}

function identityRequired(need: Need): S3Error {
  return new S3Error('PlatformIdentityRequired', {
    message:
      need === 'sign-in'
        ? 'This needs a sign-in with e-mail and password: CreatePlatformSession with Store.'
        : 'This access key has no log-in of the task platform: CreatePlatformSession with Store, or CreateJwt with Store.',
  })
}

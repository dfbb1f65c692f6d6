import { type Context, type Identity, S3Error, type S3Request } from 'dealgate'
import type { TaskParts } from './parts.js'
import type { Use } from './tokens.js'
import { TokenRefused } from './wire.js'

/** Who acts on the platform. */
export interface Actor {
  readonly identity: Identity | undefined
  /** A JWT that the request itself carries; it takes precedence. */
  readonly bearer: string | undefined
}

/** `optional`: without a token the platform shows what is public. */
export type Need = Use | 'optional'

const OVERRIDE = 'x-dealgate-platform-authorization'

const BEARER = /^Bearer +([!-~]{1,8192}) *$/i

/** Throws InvalidArgument for a malformed header. */
export function actorOf({ caller }: Pick<Context, 'caller'>, { headers }: Pick<S3Request, 'headers'>): Actor {
  const override = headers[OVERRIDE]
  const bearer = BEARER.exec(String(override ?? headers.authorization ?? ''))?.[1]
  if (override !== undefined && bearer === undefined) {
    throw new S3Error('InvalidArgument', {
      message: `${OVERRIDE} must be Bearer and the token of the task platform.`,
      fields: { ArgumentName: OVERRIDE },
    })
  }
  return { identity: caller?.identity, bearer }
}

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
  if (bearer !== undefined) return once(() => run(bearer), 'The task platform refuses the token of the request.')
  const use = need === 'sign-in' ? 'sign-in' : 'any'
  const token = identity && (await parts.tokens.get(identity, use))
  if (!identity || token === undefined) {
    if (need !== 'optional') throw identityRequired(need)
    return once(
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
    return once(() => run(renewed), 'The task platform refuses the token that it has just issued.')
  }
}

async function once<T>(run: () => Promise<T>, message: string): Promise<T> {
  try {
    return await run()
  } catch (error) {
    if (error instanceof TokenRefused) throw new S3Error('UpstreamAuthFailed', { message, cause: error })
    throw error
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

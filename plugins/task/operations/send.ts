import { type Context, S3Error, type S3Request } from 'dealgate'
import { acting, actorOf, type Need } from '../login/acting.js'
import type { TaskParts } from '../parts.js'
import type { PlatformAnswer, PlatformCall } from '../platform-client.js'
import { type Refusals, repeatable, successOf, TokenRefused, unrepeatable } from '../wire/answer.js'

export interface Sending extends Refusals {
  readonly need: Need | 'none'
  /** False for a request that must not be sent twice unseen; default true. */
  readonly mayRepeat?: boolean
}

/**
 * Sends a request of a client to the platform as the account that it acts with; resolves with an answer that reports
 * success. Throws S3Error.
 */
export async function send(
  parts: TaskParts,
  context: Pick<Context, 'caller'>,
  request: Pick<S3Request, 'headers' | 'signal'>,
  call: Omit<PlatformCall, 'token' | 'signal'>,
  { need, mayRepeat = true, ...refusals }: Sending,
): Promise<PlatformAnswer> {
  const run = async (token: string | undefined) => {
    const answer = await parts.client.send({ ...call, token, signal: request.signal })
    successOf(answer, refusals)
    return answer
  }
  try {
    return need === 'none' ? await run(undefined) : await acting(parts, actorOf(context, request), need, run)
  } catch (error) {
    if (error instanceof TokenRefused) {
      throw new S3Error('UpstreamAuthFailed', { message: `The task platform answered: ${error.message}`, cause: error })
    }
    throw mayRepeat ? repeatable(error) : unrepeatable(error)
  }
}

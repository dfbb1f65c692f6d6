import {
  actorOf,
  type Context,
  repeatable,
  S3Error,
  type S3Request,
  type ServiceAnswer,
  type ServiceCall,
  TokenRefused,
  unrepeatable,
} from 'dealgate'
import { acting, type Naming, TOKEN, type Wallet } from '../acting.js'
import type { PayParts } from '../parts.js'
import { type Refusals, successOf } from '../wire.js'

type Asking = Pick<S3Request, 'headers' | 'signal'>

interface Sending extends Refusals {
  /** False for a request that must not be sent twice unseen; default true. */
  readonly mayRepeat?: boolean
}

/** Sends a request that needs no wallet. Resolves with an answer that reports success. Throws S3Error. */
export function sendOpenly(
  parts: PayParts,
  { signal }: Pick<S3Request, 'signal'>,
  call: Omit<ServiceCall, 'token' | 'signal'>,
  sending: Sending = {},
): Promise<ServiceAnswer> {
  return converted(() => answered(parts, { ...call, signal }, sending), sending)
}

/** Sends a request of a client as its wallet. Resolves with an answer that reports success. Throws S3Error. */
export function sendAsWallet(
  parts: PayParts,
  context: Pick<Context, 'caller'>,
  request: Asking,
  naming: Naming,
  callOf: (wallet: Wallet) => Omit<ServiceCall, 'token' | 'signal'>,
  sending: Sending = {},
): Promise<ServiceAnswer> {
  const run = (wallet: Wallet) =>
    answered(parts, { ...callOf(wallet), token: wallet.token, signal: request.signal }, sending)
  return converted(() => acting(parts, actorOf(context, request, TOKEN), naming, run), sending)
}

async function answered(parts: PayParts, call: ServiceCall, refusals: Refusals): Promise<ServiceAnswer> {
  const answer = await parts.client.send(call)
  successOf(answer, refusals)
  return answer
}

async function converted<T>(run: () => Promise<T>, { mayRepeat = true }: Sending): Promise<T> {
  try {
    return await run()
  } catch (error) {
    if (error instanceof TokenRefused) {
      throw new S3Error('UpstreamAuthFailed', { message: `The payment service says: ${error.message}`, cause: error })
    }
    throw mayRepeat ? repeatable(error) : unrepeatable(error)
  }
}

/** Page that describes the operations of this plugin. */
export const SOURCE = 'docs/pay.md'

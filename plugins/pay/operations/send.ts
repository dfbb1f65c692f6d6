import { actorOf } from 'dealgate/paid'
import type { Context, S3Request, ServiceAnswer, ServiceCall } from 'dealgate/plugin'
import type { PayDeps } from '../deps.js'
import { type Refusals, service } from '../service.js'
import { acting, type Naming, TOKEN, type Wallet } from '../sign-in.js'

export type ClientRequest = Pick<S3Request, 'headers' | 'signal'>

interface SendOptions extends Partial<Refusals> {
  /** False for a request that must not be sent twice unseen; default true. */
  readonly mayRepeat?: boolean
}

/** Sends a request that needs no wallet. Resolves with an answer that reports success. Throws S3Error. */
export function sendOpenly(
  deps: PayDeps,
  { signal }: Pick<S3Request, 'signal'>,
  call: Omit<ServiceCall, 'token' | 'signal'>,
  sending: SendOptions = {},
): Promise<ServiceAnswer> {
  return service.forClient(() => answered(deps, { ...call, signal }, sending), sending.mayRepeat)
}

/** Sends a request of a client as its wallet. Resolves with an answer that reports success. Throws S3Error. */
export function sendAsWallet(
  deps: PayDeps,
  context: Pick<Context, 'caller'>,
  request: ClientRequest,
  naming: Naming,
  callOf: (wallet: Wallet) => Omit<ServiceCall, 'token' | 'signal'>,
  sending: SendOptions = {},
): Promise<ServiceAnswer> {
  const run = (wallet: Wallet) =>
    answered(deps, { ...callOf(wallet), token: wallet.token, signal: request.signal }, sending)
  return service.forClient(async () => acting(deps, actorOf(context, request, TOKEN), naming, run), sending.mayRepeat)
}

async function answered(deps: PayDeps, call: ServiceCall, refusals: Partial<Refusals>): Promise<ServiceAnswer> {
  const answer = await deps.client.send(call)
  service.successOf(answer, refusals)
  return answer
}

export const SOURCE = 'docs/pay.md'

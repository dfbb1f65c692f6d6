import { type Actor, requireToken, S3Error, TokenRefused } from 'dealgate'
import type { PayParts } from './parts.js'

/** A wallet as requests to the service name it. */
export interface Wallet {
  /** Variant A. */
  readonly token: string | undefined
  /** In lower case; undefined if neither request nor session names one. */
  readonly address: string | undefined
}

export interface Naming {
  /** Wallet that the request names; in variant A only the signed-in one. */
  readonly named?: string | undefined
  /** Variant B, where the service knows wallets by their address alone: this call does not work without. */
  readonly needsAddress?: boolean
}

/** The service, and the header with its token in signed requests. */
export const TOKEN = { service: 'payment service', header: 'x-dealgate-wallet-authorization' } as const
/**
 * Runs a call as the wallet of the actor.
 * @throws S3Error WalletNotLinked without a wallet, UpstreamAuthFailed for a token that is refused, AccessDenied for an
 * unsigned request in variant B, where the service itself checks no sign-in
 */
export async function acting<T>(
  parts: PayParts,
  { identity, bearer }: Actor,
  { named, needsAddress = false }: Naming,
  run: (wallet: Wallet) => Promise<T>,
): Promise<T> {
  const asked = named?.toLowerCase()
  if ((await parts.variant()) === 'b') {
    if (!identity)
      throw new S3Error('AccessDenied', { message: 'This payment service has no tokens: sign the request.' })
    const address = asked ?? parts.options.wallet?.toLowerCase()
    if (address === undefined && needsAddress)
      throw notLinked('Name a wallet: WalletAddress, or the option wallet of the plugin.')
    return requireToken(
      () => run({ token: undefined, address }),
      'The payment service wants a sign-in, unlike variant B.',
    )
  }
  if (bearer !== undefined) {
    return requireToken(
      () => run({ token: bearer, address: asked }),
      'The payment service refuses the token of the request.',
    )
  }
  const session = identity && (await parts.wallets.get(identity))
  if (!identity || !session) throw notLinked('Link one: CreateWalletNonce, then CreateWalletSession with Store.')
  if (asked !== undefined && asked !== session.address)
    throw new S3Error('AccessDenied', { message: 'This access key has another wallet than the one that is named.' })
  const expired = session.until !== undefined && session.until <= parts.host.now()
  try {
    if (expired) throw new TokenRefused('The session has expired.')
    return await run({ token: session.token, address: session.address })
  } catch (error) {
    if (!(error instanceof TokenRefused)) throw error
    await parts.wallets.forget(identity, session)
    throw new S3Error('UpstreamAuthFailed', {
      message: `The sign-in of the wallet ${expired ? 'has expired' : 'is refused'}, and is now forgotten. Sign in again: CreateWalletNonce.`,
      cause: error,
    })
  }
}

function notLinked(remedy: string): S3Error {
  return new S3Error('WalletNotLinked', { message: `This access key has no wallet. ${remedy}` })
}

import { type Actor, type IdentitySecrets, requireToken, TokenRefused } from 'dealgate/paid'
import { type Identity, type PluginHost, S3Error } from 'dealgate/plugin'
import type { Mode } from './facts.js'
import type { PayOptions } from './options.js'
import type { OwnerSessions } from './owner.js'

interface WalletSession {
  /** Address that the sign-in named, in lower case. */
  readonly address: string
  /** Name of the chain environment. */
  readonly network: string
  readonly token: string
  /** When the token expires, ms since 1970, if it states that. */
  readonly until?: number
}

export type Wallets = IdentitySecrets<WalletSession>

/** A wallet as requests to the service name it. */
export interface Wallet {
  /** Where the service has sign-ins. */
  readonly token: string | undefined
  /** In lower case; undefined if neither request nor session names one. */
  readonly address: string | undefined
}

export interface Naming {
  /** Wallet that the request names; where the service has sign-ins, only the signed-in one. */
  readonly named?: string | undefined
  /** Without sign-ins, the service knows wallets by their address alone: this call does not work without. */
  readonly needsAddress?: boolean
}

/** The service, and the header with its token in signed requests. */
export const TOKEN = { service: 'payment service', header: 'x-dealgate-wallet-authorization' } as const

interface SignInDeps {
  readonly options: Pick<PayOptions, 'wallet'>
  readonly host: Pick<PluginHost, 'now'>
  readonly wallets: Wallets
  readonly owner: OwnerSessions
  mode(): Promise<Mode>
}

/**
 * Runs a call as the wallet of the actor.
 * @throws S3Error WalletNotLinked without a wallet, UpstreamAuthFailed for a token that is refused, AccessDenied for an
 * unsigned request where the service itself checks no sign-in
 */
export async function acting<T>(
  deps: SignInDeps,
  { identity, bearer }: Actor,
  { named, needsAddress = false }: Naming,
  run: (wallet: Wallet) => Promise<T>,
): Promise<T> {
  const asked = named?.toLowerCase()
  if ((await deps.mode()) === 'open') {
    if (!identity)
      throw new S3Error('AccessDenied', { message: 'This payment service has no tokens: sign the request.' })
    const address = asked ?? deps.options.wallet?.toLowerCase() ?? (await deps.owner.walletOf(identity))?.address
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
  return asLinked(deps, identity, asked, run)
}

async function asLinked<T>(
  deps: SignInDeps,
  identity: Identity | undefined,
  asked: string | undefined,
  run: (wallet: Wallet) => Promise<T>,
): Promise<T> {
  const { wallets, host } = deps
  const session = identity && (await wallets.get(identity))
  if (!identity || !session) return asOwner(deps, identity, asked, run)
  const { token, address, until } = session
  requireOwn(asked, address)
  const expired = until !== undefined && until <= host.now()
  try {
    if (expired) throw new TokenRefused('The session has expired.')
    return await run({ token, address })
  } catch (error) {
    if (!(error instanceof TokenRefused)) throw error
    // The owner who has linked a wallet would go on as another one.
    const stays = (await deps.owner.walletOf(identity)) !== undefined
    if (!stays) await wallets.change(identity, (linked) => (linked.token === token ? undefined : linked))
    const rest = stays
      ? 'or unlink it, to act as the wallet that this server keeps: UnlinkWallet.'
      : 'because it is now forgotten.'
    throw new S3Error('UpstreamAuthFailed', {
      message: `The sign-in of the wallet ${expired ? 'has expired' : 'is refused'}. Sign in again, by CreateWalletNonce, ${rest}`,
      cause: error,
    })
  }
}

/** Runs a call as the wallet that the server keeps for its owner. Throws WalletNotLinked for all other callers. */
async function asOwner<T>(
  { owner }: SignInDeps,
  identity: Identity | undefined,
  asked: string | undefined,
  run: (wallet: Wallet) => Promise<T>,
): Promise<T> {
  const session = await owner.of(identity)
  if (!session) throw notLinked('Link one: CreateWalletNonce, then CreateWalletSession with Store.')
  requireOwn(asked, session.address)
  try {
    return await run(session)
  } catch (error) {
    if (!(error instanceof TokenRefused)) throw error
    const renewed = (await owner.of(identity, session.token)) ?? session
    return requireToken(() => run(renewed), 'The payment service refuses the token that it has just issued.')
  }
}

function requireOwn(asked: string | undefined, address: string): void {
  if (asked === undefined || asked === address) return
  throw new S3Error('AccessDenied', { message: 'This access key has another wallet than the one that is named.' })
}

function notLinked(remedy: string): S3Error {
  return new S3Error('WalletNotLinked', { message: `This access key has no wallet. ${remedy}` })
}

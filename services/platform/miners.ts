import { HttpError } from '../http/errors.js'
import { NetworkError } from '../network/network.js'
import type { ListedProvider } from '../network/provider-record.js'
import type { PlatformContext } from './context.js'
import { FIRST_USER } from './users.js'

/** A provider of the network, as the platform lists it. */
export interface KnownProvider extends ListedProvider {
  /** Size of the pieces that it holds for deals, bytes. */
  readonly heldBytes: number
}

type Deps = Pick<PlatformContext, 'network' | 'db'>

/**
 * The storage providers of the network. Throws HttpError 503 when the network cannot be reached.
 */
export async function knownProviders({ network, db }: Deps): Promise<KnownProvider[]> {
  const totals = await network.dealTotals()
  // A provider without an update is as old as the platform.
  const { miners, users } = db.read
  const begun = (await users.get(FIRST_USER))?.registered ?? 0
  const all = await asking(() => network.providers())
  const settings = await Promise.all(all.map(({ minerId }) => miners.settings(minerId)))
  return all.map((provider, n) => ({
    ...provider,
    updated: settings[n]?.updated ?? begun,
    heldBytes: totals
      .filter(({ minerId, held }) => held && minerId === provider.minerId)
      .reduce((sum, { pieceBytes }) => sum + pieceBytes, 0),
  }))
}

/** Throws HttpError 404 when there is no such provider. */
export async function knownProvider(deps: Deps, minerId: string): Promise<KnownProvider> {
  const provider = (await knownProviders(deps)).find((one) => one.minerId === minerId)
  if (provider === undefined) throw new HttpError(404, 'Miner Not found')
  return provider
}

/** Converts a refusal of the network to a HttpError. */
export async function asking<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask()
  } catch (error) {
    if (!(error instanceof NetworkError)) throw error
    throw new HttpError(error.code === 'Unavailable' ? 503 : 400, error.message)
  }
}

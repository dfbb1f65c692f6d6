import { NetworkError } from '../../network/network.js'
import { type ListedProvider, providerRecord, withUnit } from '../../network/provider-record.js'
import type { PlatformContext } from '../context.js'
import { PlatformError } from '../errors.js'
import { FIRST_USER } from '../users/users.js'

/** A provider of the network, as the platform lists it. */
export interface KnownProvider extends ListedProvider {
  /** Size of the pieces that it holds for deals, bytes. */
  readonly heldBytes: number
}

type Parts = Pick<PlatformContext, 'network' | 'miners' | 'users'>

/**
 * The storage providers of the network. Throws PlatformError 503 when the network cannot be reached.
 */
export async function knownProviders({ network, miners, users }: Parts): Promise<KnownProvider[]> {
  const totals = network.dealTotals()
  // A provider without an update is as old as the platform.
  const begun = users.get(FIRST_USER)?.registered ?? 0
  const all = await asking(() => network.providers())
  return all.map((provider) => ({
    ...provider,
    updated: miners.settings(provider.minerId).updated ?? begun,
    heldBytes: totals
      .filter(({ minerId, held }) => held && minerId === provider.minerId)
      .reduce((sum, { pieceBytes }) => sum + pieceBytes, 0),
  }))
}

/** Throws PlatformError 404 when there is no such provider. */
export async function knownProvider(parts: Parts, minerId: string): Promise<KnownProvider> {
  const provider = (await knownProviders(parts)).find((one) => one.minerId === minerId)
  if (provider === undefined) throw new PlatformError(404, 'Miner Not found')
  return provider
}

/** A member of the list, which has the power of the provider besides: what it has sealed. */
export function recordOf(provider: KnownProvider): object {
  return { ...providerRecord(provider), adjusted_power: withUnit(provider.heldBytes) }
}

/** Converts a refusal of the network to a PlatformError. */
export async function asking<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask()
  } catch (error) {
    if (!(error instanceof NetworkError)) throw error
    throw new PlatformError(error.code === 'Unavailable' ? 503 : 400, error.message)
  }
}

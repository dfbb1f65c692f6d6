import { type Context, type ListedProvider, S3Error } from 'dealgate'
import { DealClient } from './deal-client.js'
import type { GatewayProvider } from './deal-wire.js'
import type { DealParts } from './parts.js'

/**
 * The storage providers: the gateway's list, or that of another plugin where the gateway has none. Undefined where
 * there is neither. Throws what DealClient.providers throws.
 */
export async function knownProviders(
  { host }: Pick<DealParts, 'host'>,
  { gateway, log }: Pick<Context, 'gateway' | 'log'>,
): Promise<readonly GatewayProvider[] | undefined> {
  if ((await gateway.features()).dealProviders) return new DealClient(gateway, log).providers()
  try {
    return (await host.offered.providers?.list())?.map(gatewayForm)
  } catch (err) {
    // Deals do not depend on another service.
    if (!(err instanceof S3Error)) throw err
    log.warn({ err }, 'the list of storage providers of another service could not be read')
    return undefined
  }
}

function gatewayForm(provider: ListedProvider): GatewayProvider {
  return {
    miner_id: provider.minerId,
    location: provider.location,
    price: provider.price,
    verified_price: provider.verifiedPrice,
    min_piece_size: provider.minPieceSize,
    max_piece_size: provider.maxPieceSize,
    offline_deal_available: provider.offlineDealAvailable,
    score: provider.score,
    status: provider.status,
    contact_info: provider.contactInfo,
    update_time_str: provider.updateTime,
  }
}

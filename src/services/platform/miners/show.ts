import { providerRecord } from '../../network/provider-record.js'
import type { Exchange } from '../http/exchange.js'
import { minerNumber } from '../units/miner-number.js'
import { type KnownProvider, knownProvider } from './known-providers.js'
import type { MinerSettings } from './miners.js'

/** GET /miners/{miner_id}: one storage provider. */
export async function showMiner({ context, path }: Exchange): Promise<object> {
  const provider = await knownProvider(context, path.miner_id ?? '')
  return { data: { miner: providerRecord(provider) } }
}

/** GET /miner/info/{miner_fid}: how a provider bids. Its program asks for it at the start, without a token. */
export async function showBidding({ context, path }: Exchange): Promise<object> {
  const provider = await knownProvider(context, path.miner_fid ?? '')
  return { data: configuration(provider, context.miners.settings(provider.minerId)) }
}

/** The configuration of a provider, as its program reads it. */
export function configuration(provider: KnownProvider, settings: MinerSettings): object {
  return {
    id: minerNumber(provider.minerId),
    miner_fid: provider.minerId,
    bid_mode: settings.bidMode,
    expected_sealing_time: settings.expectedSealingTime,
    start_epoch: settings.startEpoch,
    auto_bid_task_per_day: settings.autoBidTaskPerDay,
    location: provider.location,
    offline_deal_available: provider.offlineDealAvailable,
  }
}

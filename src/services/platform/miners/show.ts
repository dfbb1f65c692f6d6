import { providerRecord } from '../../network/provider-record.js'
import type { Exchange } from '../http/exchange.js'
import { knownProvider } from './known-providers.js'

/** GET /miners/{miner_id}: one storage provider. */
export async function showMiner({ context, path }: Exchange): Promise<object> {
  const provider = await knownProvider(context, path.miner_id ?? '')
  return { data: { miner: providerRecord(provider) } }
}

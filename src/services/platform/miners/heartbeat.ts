import { readFields } from '../http/body.js'
import type { Exchange } from '../http/exchange.js'
import { ownProvider } from './update.js'

/**
 * POST /heartbeat: the program of a provider of the caller runs. The time is that of the latest update in the lists of
 * providers. The answer must not have the word `fail`, which programs take for a failure: no id of a provider has it.
 */
export async function heartbeat(exchange: Exchange): Promise<object> {
  const { miners, writer, seconds } = exchange.context
  const { minerId } = await ownProvider(exchange, (await readFields(exchange)).required('miner_id'))
  const now = seconds()
  await writer.run(() => miners.touch(minerId, now))
  return { data: { miner_fid: minerId, update_time_str: String(now) }, message: 'The heartbeat has arrived.' }
}

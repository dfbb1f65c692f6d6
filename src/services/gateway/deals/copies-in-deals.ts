import { NetworkError } from '../../network/network.js'
import type { GatewayContext } from '../context.js'
import { GatewayError } from '../errors.js'
import type { HeldCopy } from './manifest.js'

/** What is needed to read from deals. */
export type RetrievalTools = Pick<GatewayContext, 'manifest' | 'network' | 'log'>

const NO_DEAL = 'No deal holds this object as it is.'

/**
 * Gives the deals that hold this generation to `use`, one after the other, until one does. Throws GatewayError RetrievalFailed with what was wrong with each.
 * @param use throws NetworkError when this deal will not do
 * @param dealCid the one deal that is meant; any by default
 */
export async function firstThatDoes<T>(
  { manifest, log }: RetrievalTools,
  generation: string,
  use: (copy: HeldCopy) => Promise<T>,
  dealCid?: string,
): Promise<T> {
  const reasons = new Set<string>()
  for (const copy of manifest.copiesOf(generation)) {
    if (dealCid !== undefined && copy.dealCid !== dealCid) continue
    try {
      return await use(copy)
    } catch (error) {
      if (!(error instanceof NetworkError)) throw error
      log.info({ dealCid: copy.dealCid, reason: error.message }, 'A deal did not deliver.')
      reasons.add(error.message)
    }
  }
  throw new GatewayError('RetrievalFailed', { value: reasons.size === 0 ? NO_DEAL : [...reasons].join(' ') })
}

/**
 * The bytes of a generation out of whatever deals hold it: where one fails, the next goes on. They are those of the CID that `copiesOf` tells only once a
 * caller has computed it. Throws GatewayError RetrievalFailed.
 */
export async function* readFromDeals(
  tools: RetrievalTools,
  generation: string,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const reasons: string[] = []
  let given = 0
  for (const { dealCid, file } of tools.manifest.copiesOf(generation)) {
    try {
      let position = 0
      for await (const chunk of tools.network.retrieve(dealCid, file, signal)) {
        const fresh = chunk.subarray(Math.max(0, given - position))
        position += chunk.length
        if (fresh.length === 0) continue
        given += fresh.length
        yield fresh
      }
      return
    } catch (error) {
      if (!(error instanceof NetworkError)) throw error
      reasons.push(error.message)
    }
  }
  throw new GatewayError('RetrievalFailed', { value: reasons.length === 0 ? NO_DEAL : reasons.join(' ') })
}

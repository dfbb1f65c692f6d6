import { NetworkError } from '../../network/network.js'
import type { GatewayContext } from '../context.js'
import { GatewayError } from '../errors.js'
import type { HeldCopy } from './manifest.js'

/** The parts of the context that reading from deals needs. */
export type RetrievalContext = Pick<GatewayContext, 'manifest' | 'network' | 'log'>

const NO_DEAL = 'No deal holds the current generation of this object.'

/**
 * Calls `use` with the deals that hold this generation, one after the other, until one succeeds. Throws GatewayError
 * RetrievalFailed with the reason of each failure.
 * @param use throws NetworkError when this deal fails
 * @param dealCid the only deal to try; default any deal
 */
export async function firstThatDoes<T>(
  { manifest, log }: RetrievalContext,
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
      log.info({ dealCid: copy.dealCid, reason: error.message }, 'Could not retrieve an object from a deal.')
      reasons.add(error.message)
    }
  }
  throw new GatewayError('RetrievalFailed', { value: reasons.size === 0 ? NO_DEAL : [...reasons].join(' ') })
}

/**
 * Reads the bytes of a generation from the deals that hold it; when one fails, the next continues. The caller must
 * compute the CID and compare it with the one of `copiesOf`. Throws GatewayError RetrievalFailed.
 */
export async function* readFromDeals(
  context: RetrievalContext,
  generation: string,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const reasons: string[] = []
  let given = 0
  for (const { dealCid, file } of context.manifest.copiesOf(generation)) {
    try {
      let position = 0
      for await (const chunk of context.network.retrieve(dealCid, file, signal)) {
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

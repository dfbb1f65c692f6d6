import type { GatewayClient } from '../client.js'
import { nonsense } from '../errors.js'

/** The epochs of the state stores that were used with the gateway, as the gateway remembers them. */
export interface KnownEpochs {
  /**
   * Tells whether the gateway knows this epoch, and whether it knows others. Resolves undefined on a gateway that
   * remembers none. Throws S3Error.
   * @param epoch undefined asks about the others only
   */
  look(epoch: string | undefined): Promise<{ readonly known: boolean; readonly others: boolean } | undefined>
  /**
   * Stores the epoch at the gateway in place of those in `over`. Durable once it resolves. Does nothing on a gateway
   * that remembers none. Throws S3Error.
   */
  keep(epoch: string, over: readonly string[]): Promise<void>
}

export function knownEpochs({ session, features }: Pick<GatewayClient, 'session' | 'features'>): KnownEpochs {
  async function ask(params: object) {
    if (!(await features.get(session)).stateEpochs) return undefined
    const { known, others } = await session.call({ method: 'web.StateEpoch', params, repeatable: true })
    if (typeof known !== 'boolean' || typeof others !== 'boolean')
      throw nonsense('answered web.StateEpoch without known or others')
    return { known, others }
  }
  return {
    look: (epoch = '') => ask({ epoch }),
    async keep(epoch, over) {
      await ask({ epoch, over, keep: true })
    },
  }
}

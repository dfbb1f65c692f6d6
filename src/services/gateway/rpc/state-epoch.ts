import { z } from 'zod'
import { GatewayError } from '../errors.js'
import { defineSignedMethod } from './method.js'
import { text, texts } from './params.js'

const MAX_LENGTH = 128

/**
 * Remembers which state stores the clients of the account have used, by the epoch of each store, so that a client
 * without local memory recognises a store that has lost its records. Returns whether the epoch was known, and whether
 * others were, before the call. With `keep` the epoch is known from now on, durably, and replaces those in `over`. See
 * docs/state.md.
 */
export const stateEpoch = defineSignedMethod({
  name: 'web.StateEpoch',
  feature: 'state-epoch',
  params: z.object({
    epoch: text,
    over: texts,
    keep: z
      .boolean()
      .nullish()
      .transform((value) => value ?? false),
  }),
  async run({ epoch, over, keep }, { context, account: { id } }) {
    const { stateEpochs, writer } = context
    if (epoch.length > MAX_LENGTH || (keep && (epoch === '' || over.includes(epoch))))
      throw new GatewayError('InvalidArguments')
    const found = () => ({ known: stateEpochs.has(id, epoch), others: stateEpochs.hasOther(id, epoch) })
    if (!keep || (stateEpochs.has(id, epoch) && !over.some((former) => stateEpochs.has(id, former)))) return found()
    return writer.run(() => {
      const before = found()
      stateEpochs.keep(id, epoch, over)
      return before
    })
  },
})

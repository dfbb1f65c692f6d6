import { providerRecord } from '../../../network/provider-record.js'
import { dealEndpoint } from './envelope.js'
import { asking } from './network-failure.js'

/** GET providers: the providers that accept deals, in the terms of the task platform. */
export const listProviders = dealEndpoint({
  nothing: () => null,
  async run({ context: { network } }) {
    const providers = await asking(() => network.providers())
    // The start of the current status is unknown, so the time is that of this answer.
    const updated = Math.floor(Date.now() / 1000)
    const list = providers.map((provider) => providerRecord({ ...provider, updated }))
    return { data: { providers: list, epoch: network.epoch(), epochSeconds: network.epochSeconds }, message: '' }
  },
})

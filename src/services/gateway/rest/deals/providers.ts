import type { Provider } from '../../../network/network.js'
import { dealEndpoint } from './envelope.js'
import { asking } from './network-failure.js'

/** GET providers: the providers that accept deals, in the terms of the task platform. */
export const listProviders = dealEndpoint({
  nothing: () => null,
  async run({ context: { network } }) {
    const providers = await asking(() => network.providers())
    // The start of the current status is unknown, so the time is that of this answer.
    const update_time_str = String(Math.floor(Date.now() / 1000))
    const list = providers.map((provider) => ({ ...toWire(provider), update_time_str }))
    return { data: { providers: list, epoch: network.epoch(), epochSeconds: network.epochSeconds }, message: '' }
  },
})

function toWire(provider: Provider): object {
  return {
    miner_id: provider.minerId,
    location: provider.location,
    price: provider.price,
    verified_price: provider.verifiedPrice,
    min_piece_size: withUnit(provider.minPieceSize),
    max_piece_size: withUnit(provider.maxPieceSize),
    offline_deal_available: provider.offlineDealAvailable,
    score: provider.score,
    status: provider.status,
    contact_info: provider.contactInfo,
  }
}

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'] as const

/** Bytes, exactly, in the largest unit of which they are a multiple: `32GiB`, `1B`. */
function withUnit(bytes: number): string {
  let value = bytes
  let unit = 0
  while (value > 0 && value % 1024 === 0 && unit < UNITS.length - 1) {
    value /= 1024
    unit++
  }
  return `${value}${UNITS[unit]}`
}

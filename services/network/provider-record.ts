import type { Document, documents } from '../../common/service-documents.js'
import type { Provider } from './network.js'

/** A provider, and when something about it changed, as far as the service that lists it knows. */
export interface ListedProvider extends Provider {
  /** Unix seconds. */
  readonly updated: number
}

/** A storage provider in the terms of the task platform, as its interface and the gateway's write it. */
export function providerRecord(provider: ListedProvider): Document<typeof documents.provider> {
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
    update_time_str: String(provider.updated),
  }
}

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'] as const

/** Bytes, exactly, in the largest unit of which they are a multiple: `32GiB`, `1B`. */
export function withUnit(bytes: number): string {
  let value = bytes
  let unit = 0
  while (value > 0 && value % 1024 === 0 && unit < UNITS.length - 1) {
    value /= 1024
    unit++
  }
  return `${value}${UNITS[unit]}`
}

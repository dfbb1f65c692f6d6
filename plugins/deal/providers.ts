import { type ProviderDocument, providerDocumentOf } from 'dealgate'
import type { GatewayProvider } from './deal-wire.js'
import { timeOf } from './documents/deal-document.js'
import { readSize } from './piece-size.js'
import { parseAmount } from './terms/amounts.js'

export function providerOf(provider: GatewayProvider): ProviderDocument {
  return providerDocumentOf(provider, timeOf(provider.update_time_str))
}

/** Attofil per GiB and epoch; undefined when the provider gives no price. */
export function askOf(provider: GatewayProvider, verified: boolean): bigint | undefined {
  return parseAmount(verified ? provider.verified_price : provider.price)
}

/**
 * The reason why the provider does not take a piece of this size (bytes), in a sentence; undefined when it does, as far
 * as is known.
 */
export function whyUnfit(provider: GatewayProvider, pieceSize: number): string | undefined {
  const { miner_id: id, status } = provider
  if (status !== '' && status.toLowerCase() !== 'active') return `${id} is ${status}.`
  const smallest = readSize(provider.min_piece_size) ?? 0
  const largest = readSize(provider.max_piece_size) ?? Number.POSITIVE_INFINITY
  if (pieceSize < smallest) return `${id} takes pieces of ${smallest} bytes or more; this one has about ${pieceSize}.`
  if (pieceSize > largest) return `${id} takes pieces of at most ${largest} bytes; this one has about ${pieceSize}.`
  return undefined
}

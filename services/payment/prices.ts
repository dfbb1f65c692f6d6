import { parseFil } from '../network/fil.js'
import type { Network } from '../network/network.js'

const GIB = 2n ** 30n

/** Attofil of a storage coin per millionth of a stable coin, at a rate of 1. */
const ATTO_PER_MILLIONTH = 10n ** 12n

/** Epochs of a day of a deal, whatever the length of an epoch of the network is. */
export const EPOCHS_PER_DAY = 2880

/**
 * What an upload costs of a deal that it shares, in millionths of a stable coin.
 * @param deal price in attofil per epoch, from its first to its last epoch
 * @param size bytes of the upload
 * @param all bytes of all uploads in the deal
 */
export function costOfDeal(
  deal: { readonly price: string; readonly startEpoch: number; readonly endEpoch: number },
  size: number,
  all: number,
): bigint {
  const atto = BigInt(deal.price) * BigInt(deal.endEpoch - deal.startEpoch)
  // Empty files share in nothing.
  const [part, whole] = all === 0 ? [0n, 1n] : [BigInt(size), BigInt(all)]
  return ceiling(atto * part * BigInt(COIN_PRICE), whole * ATTO_PER_MILLIONTH * COIN_PRICE_SCALE)
}

/**
 * The least payment for an upload, in millionths of a stable coin: the average price of the active providers for its
 * size and time, times the factor by which clients pay ahead. At least 1. Rejects with NetworkError.
 * @param size bytes
 * @param days for which it is stored
 */
export async function leastPayment(network: Network, size: number, days: number): Promise<bigint> {
  const active = (await network.providers()).filter(({ status }) => status === 'Active')
  const prices = active.map(({ price }) => parseFil(price) ?? 0n)
  const average = prices.length === 0 ? 0n : prices.reduce((sum, price) => sum + price, 0n) / BigInt(prices.length)
  const atto = average * BigInt(size) * BigInt(days * EPOCHS_PER_DAY)
  const factor = BigInt(PAY_MULTIPLY_FACTOR * 10)
  const above = atto * BigInt(COIN_PRICE) * factor
  const below = GIB * ATTO_PER_MILLIONTH * COIN_PRICE_SCALE * 10n
  const amount = ceiling(above, below)
  return amount > 0n ? amount : 1n
}

function ceiling(above: bigint, below: bigint): bigint {
  return (above + below - 1n) / below
}

/**
 * Price of a storage coin in stable coins, times 10^8. The embedded ledger has no market: its coins have a fixed rate,
 * 5 stable coins.
 */
export const COIN_PRICE = 500_000_000
const COIN_PRICE_SCALE = 100_000_000n

/** The coin of the embedded ledger, which has no value. */
export const TOKEN_NAME = 'STABLE'

/** Days for which a payment is locked at most. */
export const MAX_LOCK_DAYS = 6

/** Clients lock this many times the expected price; what is not needed comes back. */
export const PAY_MULTIPLY_FACTOR = 1.5

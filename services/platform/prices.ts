import type { Document, documents } from '../../common/service-documents.js'
import { DAY_SECONDS } from '../../common/time.js'
import { formatFil, parseFil } from '../network/fil.js'
import type { Network, Provider } from '../network/network.js'

const GIB = 2n ** 30n
const GB = 10n ** 9n
const MICROSECONDS = 10n ** 6n
const DAY = BigInt(DAY_SECONDS) * MICROSECONDS

/**
 * Average prices, as the interface names them. Those of today are of the active providers, each counted once; the
 * historical ones are of all deals that were made, each counted by its size, but never below the price that active
 * providers offer today for regular deals, which uploads become: clients lock an amount that follows from them, by the
 * year. The embedded network has no gas, so that messages and sealing cost nothing.
 */
export async function averagePrices(
  network: Network,
  providers: readonly Provider[],
): Promise<Document<typeof documents.priceStatistics>> {
  const active = providers.filter(({ status }) => status === 'Active')
  const epoch = BigInt(Math.round(network.epochSeconds * Number(MICROSECONDS)))
  const perYear = (prices: readonly bigint[]): string =>
    `${formatFil(quotient(sum(prices) * GB * DAY * 365n, BigInt(prices.length) * GIB * epoch))} FIL`
  const regular = pricesOf(active.map(({ price }) => price))
  const offered = quotient(sum(regular) * DAY * 365n, BigInt(regular.length) * epoch)
  const totals = await network.dealTotals()
  const historical = (verified: boolean): string => {
    const those = totals.filter((one) => one.verified === verified)
    const bytes = those.reduce((total, { pieceBytes }) => total + pieceBytes, 0)
    const paid = quotient(sum(those.map(({ price }) => price)) * GIB * DAY * 365n, BigInt(bytes) * epoch)
    return `${formatFil(paid > offered ? paid : offered)} FIL/GiB/year`
  }
  return {
    average_cost_push_message: '0 FIL',
    average_data_cost_sealing_1TB: '0 FIL',
    average_gas_cost_sealing_1TB: '0 FIL',
    average_min_piece_size: bytes(average(active.map(({ minPieceSize }) => minPieceSize))),
    average_price_per_GB_per_year: perYear(regular),
    average_verified_price_per_GB_per_year: perYear(pricesOf(active.map(({ verifiedPrice }) => verifiedPrice))),
    historical_average_price_regular: historical(false),
    historical_average_price_verified: historical(true),
  }
}

/** Attofil; without those that are not offered. */
function pricesOf(texts: readonly string[]): bigint[] {
  return texts.map(parseFil).filter((price) => price !== undefined)
}

function sum(amounts: readonly bigint[]): bigint {
  return amounts.reduce((total, amount) => total + amount, 0n)
}

/** Attofil, rounded down; 0 when there is nothing to divide by. */
function quotient(attofil: bigint, by: bigint): bigint {
  return by === 0n ? 0n : attofil / by
}

function average(values: readonly number[]): number {
  return values.length === 0 ? 0 : values.reduce((total, value) => total + value, 0) / values.length
}

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'] as const

/** In the largest unit of which there is at least one, to two decimals: `1.25 GiB`. */
function bytes(count: number): string {
  let value = count
  let unit = 0
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024
    unit++
  }
  return `${Number(value.toFixed(2))} ${UNITS[unit]}`
}

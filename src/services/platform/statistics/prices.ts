import { DAY_SECONDS } from '../../../common/durations.js'
import type { DealTotals, Network, Provider } from '../../network/network.js'
import { formatFil, parseFil } from '../../network/units/fil.js'
import type { Exchange } from '../http/exchange.js'
import { asking } from '../miners/known-providers.js'

const GIB = 2 ** 30
const GB = 1e9

/** GET /stats/storage: average prices. */
export async function priceStatistics({ context: { network } }: Exchange): Promise<object> {
  return { code: 200, data: averagePrices(network, await asking(() => network.providers())) }
}

/**
 * Average prices, as the interface names them. Those of today are of the active providers, each counted once; the
 * historical ones are of all deals that were made, each counted by its size. The embedded network has no gas, so that
 * messages and sealing cost nothing.
 */
export function averagePrices(network: Network, providers: readonly Provider[]): Readonly<Record<string, string>> {
  const active = providers.filter(({ status }) => status === 'Active')
  const epochsPerDay = DAY_SECONDS / network.epochSeconds
  const perYear = (prices: readonly string[]): string =>
    `${fil(average(prices.map(Number)) * (GB / GIB) * epochsPerDay * 365)} FIL`
  const totals = network.dealTotals()
  const historical = (verified: boolean): string => `${fil(pricePerGiB(totals, verified) * epochsPerDay)} FIL/GiB/day`
  return {
    average_cost_push_message: '0 FIL',
    average_data_cost_sealing_1TB: '0 FIL',
    average_gas_cost_sealing_1TB: '0 FIL',
    average_min_piece_size: bytes(average(active.map(({ minPieceSize }) => minPieceSize))),
    average_price_per_GB_per_year: perYear(active.map(({ price }) => price)),
    average_verified_price_per_GB_per_year: perYear(verifiedPrices(active)),
    historical_average_price_regular: historical(false),
    historical_average_price_verified: historical(true),
  }
}

function verifiedPrices(providers: readonly Provider[]): string[] {
  return providers.map(({ verifiedPrice }) => verifiedPrice).filter((price) => parseFil(price) !== undefined)
}

/** Price of the deals per GiB and epoch, in FIL; 0 without deals. */
function pricePerGiB(totals: readonly DealTotals[], verified: boolean): number {
  const those = totals.filter((one) => one.verified === verified)
  const sum = (of: (one: DealTotals) => number): number => those.reduce((total, one) => total + of(one), 0)
  const size = sum(({ pieceBytes }) => pieceBytes)
  return size === 0 ? 0 : sum(({ price }) => price) / (size / GIB)
}

function average(values: readonly number[]): number {
  return values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length
}

const DIGITS = 12
const DECIMALS = 18

/** A decimal without exponent, to twelve significant digits. */
function fil(amount: number): string {
  const [digits = '', exponent = ''] = amount.toExponential(DIGITS - 1).split('e')
  const shift = DECIMALS - (DIGITS - 1) + Number(exponent)
  const whole = BigInt(digits.replace('.', ''))
  return formatFil(shift < 0 ? whole / 10n ** BigInt(-shift) : whole * 10n ** BigInt(shift))
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

import { readFileSync } from 'node:fs'
import { arch, availableParallelism, platform } from 'node:os'
import { join } from 'node:path'
import { packageFolder } from '../../common/files/package-folder.js'
import { type Network, NetworkError } from '../network/network.js'
import { parseFil } from '../network/units/fil.js'
import { averagePrices } from '../platform/prices.js'
import { addressOfName, checksummed } from './addresses.js'
import type { PaymentAddresses, PaymentContext } from './context.js'
import { PaymentError } from './errors.js'
import type { Exchange } from './exchange.js'
import { withMembersInWords } from './words.js'

/** For contracts that the embedded ledger does not have. */
const NO_CONTRACT = `0x${'0'.repeat(40)}`

/** GET /common/system/params. */
export function systemParams({ context }: Exchange): object {
  return withMembersInWords(paramsOf(context), context.words)
}

function paramsOf(context: PaymentContext): object {
  const { payment, recipient, stable } = context.addresses
  const mint = context.mintContract === undefined ? NO_CONTRACT : checksummed(context.mintContract.toLowerCase())
  if (context.variant === 'b') {
    return {
      GAS_LIMIT,
      LOCK_TIME: LOCK_DAYS,
      CHAIN_NAME: context.networkName,
      MINT_CONTRACT_ADDRESS: mint,
      PAYMENT_CONTRACT_ADDRESS: payment,
      PAYMENT_RECIPIENT_ADDRESS: recipient,
      STABLE_ADDRESS: stable,
      PAY_MULTIPLY_FACTOR,
    }
  }
  return {
    chain_name: context.networkName,
    payment_contract_address: payment,
    dao_contract_address: NO_CONTRACT,
    dex_address: NO_CONTRACT,
    mint_contract_address: mint,
    payment_recipient_address: recipient,
    stable_address: stable,
    stable_wrapped_pool_contract: NO_CONTRACT,
    dao_threshold: 0,
    storage_coin_price: COIN_PRICE,
    gas_limit: GAS_LIMIT,
    lock_time: LOCK_DAYS,
    pay_multiply_factor: PAY_MULTIPLY_FACTOR,
  }
}

/**
 * Addresses of the ledger's own accounts, which no key has: locked payments, earnings, and the stable coin.
 * @param id of the service
 */
export function addressesOf(id: string): PaymentAddresses {
  const of = (name: string): string => checksummed(addressOfName(`${id} ${name}`))
  return { payment: of('payment'), recipient: of('recipient'), stable: of('stable') }
}

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
export const LOCK_DAYS = 6

/** Clients lock this many times the expected price; what is not needed comes back. */
const PAY_MULTIPLY_FACTOR = 1.5

/** For clients of a chain; the embedded ledger takes no gas. */
const GAS_LIMIT = 8_000_000

const NANOSECONDS = 1e6

/** GET /common/host/info: the machine and the process that answer. */
export function hostInfo(): object {
  return {
    version: version(),
    operating_system: platform(),
    architecture: arch(),
    cpu_number: availableParallelism(),
    // A number of JSON; as a double it is exact to a quarter of a microsecond.
    current_unix_nano: Math.round((performance.timeOrigin + performance.now()) * NANOSECONDS),
  }
}

function version(): string {
  return JSON.parse(readFileSync(join(packageFolder(), 'package.json'), 'utf8')).version
}

/** GET /stats/storage: average prices; those of the past are in variant A alone. */
export async function priceStatistics({ context: { network, variant } }: Exchange): Promise<object> {
  const prices = averagePrices(network, await network.providers().catch(refused))
  if (variant === 'a') return prices
  return Object.fromEntries(Object.entries(prices).filter(([name]) => !name.startsWith('historical_')))
}

function refused(error: unknown): never {
  throw error instanceof NetworkError ? new PaymentError('busy', error.message) : error
}

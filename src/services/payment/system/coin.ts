/**
 * Price of a storage coin in stable coins, times 10^8. The embedded ledger has no market: its coins have a fixed rate,
 * 5 stable coins.
 */
export const COIN_PRICE = 500_000_000
export const COIN_PRICE_SCALE = 100_000_000n

/** The coin of the embedded ledger, which has no value. */
export const TOKEN_NAME = 'STABLE'

/** Days for which a payment is locked at most. */
export const LOCK_DAYS = 6

/** Clients lock this many times the expected price; what is not needed comes back. */
export const PAY_MULTIPLY_FACTOR = 1.5

/** For clients of a chain; the embedded ledger takes no gas. */
export const GAS_LIMIT = 8_000_000

import { z } from 'zod'
import { amount, count, text } from './members.js'

const both = {
  gas_limit: count,
  lock_time: count,
  pay_multiply_factor: amount,
  mint_contract_address: text,
  payment_contract_address: text,
  payment_recipient_address: text,
  stable_address: text,
}

const variantA = z.object({
  ...both,
  chain_name: text,
  dao_contract_address: text,
  dex_address: text,
  stable_wrapped_pool_contract: text,
  dao_threshold: count,
  storage_coin_price: amount,
})

const variantB = z.object(both)

export type WireParams =
  | ({ readonly variant: 'a' } & z.output<typeof variantA>)
  | ({ readonly variant: 'b' } & z.output<typeof variantB>)

/** System parameters, with the variant that their names show: those of variant B are in upper case. */
export const wireParams = z.record(z.string(), z.unknown()).transform((params): WireParams => {
  if (!('PAYMENT_CONTRACT_ADDRESS' in params)) return { variant: 'a', ...variantA.parse(params) }
  const folded = Object.fromEntries(Object.entries(params).map(([name, value]) => [name.toLowerCase(), value]))
  return { variant: 'b', ...variantB.parse(folded) }
})

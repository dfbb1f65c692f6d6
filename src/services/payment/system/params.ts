import type { PaymentAddresses, PaymentContext } from '../context.js'
import type { Exchange } from '../http/exchange.js'
import { addressOfName, checksummed } from '../wallets/address.js'
import { withMembersInWords } from '../words.js'
import { COIN_PRICE, GAS_LIMIT, LOCK_DAYS, PAY_MULTIPLY_FACTOR } from './coin.js'

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

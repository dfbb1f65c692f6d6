import { arch, availableParallelism, platform } from 'node:os'
import { z } from 'zod'
import { version } from '../../../common/files/package-folder.js'
import { type Document, documents } from '../../../common/service-documents.js'
import { NetworkError } from '../../network/network.js'
import { averagePrices } from '../../platform/prices.js'
import { documentSchema, membersOf } from '../../rest/schemas.js'
import { checksummed } from '../addresses.js'
import type { PaymentContext } from '../context.js'
import { PaymentError } from '../errors.js'
import { COIN_PRICE, MAX_LOCK_DAYS, PAY_MULTIPLY_FACTOR } from '../prices.js'
import { type PaymentRoute, route } from '../route.js'
import { withMembersInWords } from '../words.js'

/** For contracts that the embedded ledger does not have. */
const NO_CONTRACT = `0x${'0'.repeat(40)}`

/** In variant B, and in the words of a deployment, members have other names. */
const systemParams = route({
  method: 'GET',
  path: '/api/v1/common/system/params',
  access: 'public',
  codeless: 'signedIn',
  summary: 'shows where and how payments are made',
  data: z.looseObject(membersOf(documents.systemParams)).extend(membersOf(documents.signedInParams)).partial(),
  handle: ({ context }) => withMembersInWords(paramsOf(context), context.words),
})

function paramsOf(context: PaymentContext): Record<string, unknown> {
  const { payment, recipient, stable } = context.addresses
  const mint = context.mintContract === undefined ? NO_CONTRACT : checksummed(context.mintContract.toLowerCase())
  const params: Document<typeof documents.systemParams> = {
    payment_contract_address: payment,
    mint_contract_address: mint,
    payment_recipient_address: recipient,
    stable_address: stable,
    gas_limit: MAX_GAS,
    lock_time: MAX_LOCK_DAYS,
    pay_multiply_factor: PAY_MULTIPLY_FACTOR,
  }
  if (context.mode === 'open') {
    const named = Object.entries({ ...params, chain_name: context.networkName })
    return Object.fromEntries(named.map(([name, value]) => [name.toUpperCase(), value]))
  }
  const signedIn: Document<typeof documents.signedInParams> = {
    chain_name: context.networkName,
    dao_contract_address: NO_CONTRACT,
    dex_address: NO_CONTRACT,
    stable_wrapped_pool_contract: NO_CONTRACT,
    dao_threshold: 0,
    storage_coin_price: COIN_PRICE,
  }
  return { ...params, ...signedIn }
}

/** For clients of a chain; the embedded ledger takes no gas. */
const MAX_GAS = 8_000_000

const NANOSECONDS = 1e6

/** The machine and the process that answer. */
const hostInfo = route({
  method: 'GET',
  path: '/api/v1/common/host/info',
  access: 'public',
  codeless: 'signedIn',
  summary: 'shows the machine and the process that answer',
  data: documentSchema(documents.hostInfo).extend({
    current_unix_nano: z.number().describe('Nanoseconds since 1970, exact to a quarter of a microsecond.'),
  }),
  handle: info,
})

function info() {
  const host: Document<typeof documents.hostInfo> = {
    version: version(),
    operating_system: platform(),
    architecture: arch(),
    cpu_number: availableParallelism(),
  }
  return {
    ...host,
    // A number of JSON; as a double it is exact to a quarter of a microsecond.
    current_unix_nano: Math.round((performance.timeOrigin + performance.now()) * NANOSECONDS),
  }
}

/** Times 10^8, as chains have it. */
const coinPrice = route({
  method: 'GET',
  path: '/api/v1/billing/price/storagecoin',
  access: 'public',
  codeAsText: true,
  summary: 'shows the price of a storage coin in stable coins, times 10^8',
  data: z.int(),
  handle: () => COIN_PRICE,
})

/** Prices of the past are in the mode `signedIn` alone. */
const priceStatistics = route({
  method: 'GET',
  path: '/stats/storage',
  access: 'public',
  summary: 'shows average prices',
  data: documentSchema(documents.priceStatistics).partial(),
  async handle({ context: { network, mode } }) {
    const prices = await averagePrices(network, await network.providers().catch(refused))
    if (mode === 'signedIn') return prices
    return Object.fromEntries(Object.entries(prices).filter(([name]) => !name.startsWith('historical_')))
  },
})

function refused(error: unknown): never {
  throw error instanceof NetworkError ? new PaymentError('busy', error.message) : error
}

/** The service itself. */
export const system: readonly PaymentRoute[] = [systemParams, hostInfo, coinPrice, priceStatistics]

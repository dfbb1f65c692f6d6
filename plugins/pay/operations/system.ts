import { defineCall, lenient, withRaw } from 'dealgate'
import { z } from 'zod'
import type { PayParts } from '../parts.js'
import { apiPath, badResponse, count, dataOf, wireParams } from '../wire.js'
import { SOURCE, sendOpenly } from './send.js'

const shared = { source: SOURCE, access: 'signed' } as const

export function getSystemConfig(parts: PayParts) {
  return defineCall({
    ...shared,
    name: 'GetSystemConfig',
    summary: 'Returns the parameters of the payment service, by the same names for both variants.',
    on: { method: 'GET', resource: 'service', path: '/-/pay/v1/system-config' },
    result: z.object({
      Variant: z.enum(['A', 'B']),
      ChainName: z.string().optional().describe('Name of the chain environment, which a sign-in names as Network.'),
      PaymentContractAddress: z.string(),
      DaoContractAddress: z.string().optional(),
      DexAddress: z.string().optional(),
      MintContractAddress: z.string(),
      PaymentRecipientAddress: z.string(),
      StableAddress: z.string(),
      StableWrappedPoolContract: z.string().optional(),
      DaoThreshold: z.number().int().optional(),
      StorageCoinPrice: z.number().optional(),
      GasLimit: z.number().int(),
      LockTime: z.number().int().describe('Days.'),
      PayMultiplyFactor: z.number(),
    }),
    async answer({ request }) {
      const answer = await sendOpenly(parts, request, { method: 'GET', path: apiPath('common', 'system', 'params') })
      const params = dataOf(answer, wireParams)
      const common = {
        PaymentContractAddress: params.payment_contract_address,
        MintContractAddress: params.mint_contract_address,
        PaymentRecipientAddress: params.payment_recipient_address,
        StableAddress: params.stable_address,
        GasLimit: params.gas_limit,
        LockTime: params.lock_time,
        PayMultiplyFactor: params.pay_multiply_factor,
      }
      if (params.variant === 'b') return withRaw({ Variant: 'B' as const, ...common }, answer.json)
      const own = {
        ChainName: params.chain_name,
        DaoContractAddress: params.dao_contract_address,
        DexAddress: params.dex_address,
        StableWrappedPoolContract: params.stable_wrapped_pool_contract,
        DaoThreshold: params.dao_threshold,
        StorageCoinPrice: params.storage_coin_price,
      }
      return withRaw({ Variant: 'A' as const, ...common, ...own }, answer.json)
    },
  })
}

const wireHost = z.object({
  version: lenient.text,
  operating_system: lenient.text,
  architecture: lenient.text,
  cpu_number: count,
})

export function getHostInfo(parts: PayParts) {
  return defineCall({
    ...shared,
    name: 'GetHostInfo',
    summary: 'Returns the machine and the version of the payment service.',
    on: { method: 'GET', resource: 'service', path: '/-/pay/v1/host-info' },
    result: z.object({
      Version: z.string(),
      OperatingSystem: z.string(),
      Architecture: z.string(),
      CpuNumber: z.number().int(),
      CurrentUnixNano: z.string().describe('Nanoseconds since 1970: digits, because JSON numbers are not as exact.'),
    }),
    async answer({ request }) {
      const answer = await sendOpenly(parts, request, { method: 'GET', path: apiPath('common', 'host', 'info') })
      const info = dataOf(answer, wireHost)
      // As a number it would lose its last digits.
      const [, nanoseconds] = /"current_unix_nano"\s*:\s*"?(\d{1,20})/.exec(answer.text) ?? []
      if (nanoseconds === undefined) throw badResponse('The payment service does not state its time.')
      const document = {
        Version: info.version,
        OperatingSystem: info.operating_system,
        Architecture: info.architecture,
        CpuNumber: info.cpu_number,
        CurrentUnixNano: nanoseconds,
      }
      return withRaw(document, answer.json)
    },
  })
}

export function getExchangeRate(parts: PayParts) {
  return defineCall({
    ...shared,
    name: 'GetExchangeRate',
    summary: 'Returns the exchange rate of the stable coin against the storage coin.',
    on: { method: 'GET', resource: 'service', path: '/-/pay/v1/exchange-rate' },
    result: z.object({ Rate: z.number().describe('As the service states it: often times 10^8.') }),
    async answer({ request }) {
      const answer = await sendOpenly(parts, request, {
        method: 'GET',
        path: apiPath('billing', 'price', 'storagecoin'),
      })
      return withRaw({ Rate: dataOf(answer, z.coerce.number()) }, answer.json)
    },
  })
}

const statistic = z.object({
  Text: z.string().describe('As the service wrote it.'),
  Value: z.number().optional(),
  Unit: z.string().optional(),
})

const STATISTICS = {
  AverageCostPushMessage: 'average_cost_push_message',
  AverageDataCostSealing1TB: 'average_data_cost_sealing_1TB',
  AverageGasCostSealing1TB: 'average_gas_cost_sealing_1TB',
  AverageMinPieceSize: 'average_min_piece_size',
  AveragePricePerGBPerYear: 'average_price_per_GB_per_year',
  AverageVerifiedPricePerGBPerYear: 'average_verified_price_per_GB_per_year',
  HistoricalAveragePriceRegular: 'historical_average_price_regular',
  HistoricalAveragePriceVerified: 'historical_average_price_verified',
} as const

const statistics = z.object(
  Object.fromEntries(Object.keys(STATISTICS).map((name) => [name, statistic.optional()])) as Record<
    keyof typeof STATISTICS,
    z.ZodOptional<typeof statistic>
  >,
)

export function getPriceStatistics(parts: PayParts) {
  return defineCall({
    ...shared,
    name: 'GetPriceStatistics',
    summary: 'Returns average prices of storage, as the payment service computes them.',
    on: { method: 'GET', resource: 'service', path: '/-/pay/v1/price-statistics' },
    result: statistics,
    async answer({ request }) {
      const answer = await sendOpenly(parts, request, { method: 'GET', path: ['stats', 'storage'] })
      const data = dataOf(answer, z.record(z.string(), z.unknown()))
      const found = Object.entries(STATISTICS).flatMap(([name, wire]) =>
        data[wire] === undefined || data[wire] === null ? [] : [[name, statisticOf(String(data[wire]))]],
      )
      return withRaw(Object.fromEntries(found) as z.output<typeof statistics>, answer.json)
    },
  })
}

/** Splits a text such as `0.0001 FIL/GiB/day`, whose number some deployments leave out. */
function statisticOf(told: string): z.output<typeof statistic> {
  const [, digits, unit = ''] = /^\s*(\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)?\s*(.*?)\s*$/.exec(told) ?? []
  return { Text: told, ...(digits !== undefined && { Value: Number(digits) }), ...(unit !== '' && { Unit: unit }) }
}

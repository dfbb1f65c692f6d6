import { badResponse, priceStatistics } from 'dealgate/paid'
import { defineCall, withRaw } from 'dealgate/plugin'
import { z } from 'zod'
import type { PayDeps } from '../deps.js'
import { hostInfo, systemConfig } from '../documents.js'
import { apiPath, service } from '../service.js'
import { SOURCE, sendOpenly } from './send.js'

const shared = { source: SOURCE, access: 'signed' } as const

export function getSystemConfig(deps: PayDeps) {
  return defineCall({
    ...shared,
    name: 'GetSystemConfig',
    summary: 'Returns the parameters of the payment service, by the same names for both variants.',
    on: { method: 'GET', resource: 'service', path: '/-/pay/v1/system-config' },
    result: systemConfig.shown,
    async answer({ request }) {
      const answer = await sendOpenly(deps, request, { method: 'GET', path: apiPath('common', 'system', 'params') })
      return withRaw(service.dataOf(answer, systemConfig.read), answer.json)
    },
  })
}

export function getHostInfo(deps: PayDeps) {
  return defineCall({
    ...shared,
    name: 'GetHostInfo',
    summary: 'Returns the machine and the version of the payment service.',
    on: { method: 'GET', resource: 'service', path: '/-/pay/v1/host-info' },
    result: hostInfo.shown.extend({
      CurrentUnixNano: z.string().describe('Nanoseconds since 1970: digits, because JSON numbers are not as exact.'),
    }),
    async answer({ request }) {
      const answer = await sendOpenly(deps, request, { method: 'GET', path: apiPath('common', 'host', 'info') })
      const info = service.dataOf(answer, hostInfo.read)
      // The digits are taken from the text of the answer: a number would lose the last ones.
      const [, nanoseconds] = /"current_unix_nano"\s*:\s*"?(\d{1,20})/.exec(answer.text) ?? []
      if (nanoseconds === undefined) throw badResponse('The payment service does not state its time.')
      return withRaw({ ...info, CurrentUnixNano: nanoseconds }, answer.json)
    },
  })
}

export function getExchangeRate(deps: PayDeps) {
  return defineCall({
    ...shared,
    name: 'GetExchangeRate',
    summary: 'Returns the exchange rate of the stable coin against the storage coin.',
    on: { method: 'GET', resource: 'service', path: '/-/pay/v1/exchange-rate' },
    result: z.object({ Rate: z.number().describe('As the service states it: often times 10^8.') }),
    async answer({ request }) {
      const answer = await sendOpenly(deps, request, {
        method: 'GET',
        path: apiPath('billing', 'price', 'storagecoin'),
      })
      return withRaw({ Rate: service.dataOf(answer, z.coerce.number()) }, answer.json)
    },
  })
}

export function getPriceStatistics(deps: PayDeps) {
  return defineCall({
    ...shared,
    name: 'GetPriceStatistics',
    summary: 'Returns average prices of storage, as the payment service computes them.',
    on: { method: 'GET', resource: 'service', path: '/-/pay/v1/price-statistics' },
    result: priceStatistics.shown,
    async answer({ request }) {
      const answer = await sendOpenly(deps, request, { method: 'GET', path: ['stats', 'storage'] })
      return withRaw(service.dataOf(answer, priceStatistics.read), answer.json)
    },
  })
}

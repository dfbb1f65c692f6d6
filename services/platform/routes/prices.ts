import { z } from 'zod'
import { documents } from '../../../common/service-documents.js'
import { documentSchema } from '../../rest/schemas.js'
import { asking } from '../miners.js'
import { averagePrices } from '../prices.js'
import { type PlatformRoute, route } from '../route.js'

const priceStatistics = route({
  method: 'GET',
  path: '/stats/storage',
  access: 'public',
  summary: 'shows average prices',
  answer: { code: z.literal(200), data: documentSchema(documents.priceStatistics) },
  async handle({ context: { network } }) {
    return { code: 200 as const, data: await averagePrices(network, await asking(() => network.providers())) }
  },
})

export const prices: readonly PlatformRoute[] = [priceStatistics]

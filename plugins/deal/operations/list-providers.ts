import { defineCall, providerDocument } from 'dealgate'
import { z } from 'zod'
import { DealClient } from '../deal-client.js'
import { knownProviders } from '../known-providers.js'
import type { DealParts } from '../parts.js'
import { providerOf } from '../providers.js'
import { SOURCE } from '../request.js'

const result = z.object({ Providers: z.array(providerDocument).meta({ element: 'Provider' }) })

export function listProviders(parts: DealParts) {
  return defineCall({
    name: 'ListProviders',
    source: SOURCE,
    summary: 'Lists the storage providers that the gateway can make deals with.',
    access: 'signed',
    on: { method: 'GET', resource: 'service', path: '/-/deal/v1/providers' },
    result,
    pages: 'Providers',
    async answer(_call, context) {
      const providers =
        (await knownProviders(parts, context)) ?? (await new DealClient(context.gateway, context.log).providers())
      return { Providers: providers.map(providerOf) }
    },
  })
}

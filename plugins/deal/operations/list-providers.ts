import { z } from 'zod'
import { defineCall } from '../../../src/extension/define-call.js'
import { DealClient } from '../deal-client.js'
import { providerDocument, providerOf } from '../providers.js'
import { SOURCE } from '../request.js'

const result = z.object({ Providers: z.array(providerDocument).meta({ element: 'Provider' }) })

export function listProviders() {
  return defineCall({
    name: 'ListProviders',
    source: SOURCE,
    summary: 'Lists the storage providers that the gateway can make deals with.',
    on: { method: 'GET', resource: 'service', path: '/-/deal/v1/providers' },
    result,
    // It tells nothing of anybody's data.
    ownRules: true,
    pages: 'Providers',
    async answer(_call, context) {
      const providers = await new DealClient(context.gateway, context.log).providers()
      return { Providers: providers.map(providerOf) }
    },
  })
}

import { z } from 'zod'
import { defineCall } from '../extension/define-call.js'
import type { GatewayFeatures } from '../gateway/gateway.js'
import type { Operation } from '../registry/operation.js'
import type { Row } from '../registry/table.js'

const operation = z.object({ Plugin: z.string(), Name: z.string(), Method: z.string(), Route: z.string() })

const result = z.object({
  Region: z.string(),
  Plugins: z.array(z.object({ Name: z.string(), ApiVersion: z.string() })),
  StorageClasses: z.array(z.string()),
  Gateway: z.object({
    Variant: z.enum(['full', 'legacy']),
    Features: z.array(z.string()),
    Assumptions: z.array(z.string()),
  }),
  Operations: z.array(operation),
})

/**
 * What this server can do, with this gateway behind it, so that clients need not try: the extension calls, the storage classes, and what of the gateway is only assumed.
 * @param rows all operations there are, known once the table is made
 */
export function capabilitiesOperation(rows: () => readonly Row[]): Operation<'service'> {
  return defineCall({
    name: 'GetCapabilities',
    source: 'docs/extensions.md#capabilities',
    summary: 'Tells what the server can do: its calls, storage classes, and the abilities of the gateway behind it.',
    on: { method: 'GET', resource: 'service', path: '/-/capabilities' },
    ownRules: true,
    result,
    async answer(_, context) {
      const features = await context.gateway.features()
      const calls = rows().filter(({ operation }) => operation.call)
      return {
        Region: context.region,
        Plugins: [...new Set(calls.map(({ plugin }) => plugin))].map((Name) => ({ Name, ApiVersion: '1' })),
        StorageClasses: [...context.storageClasses.keys()],
        Gateway: {
          Variant: features.objectHead ? ('full' as const) : ('legacy' as const),
          Features: Object.entries(features).flatMap(([name, has]) => (has ? [name] : [])),
          Assumptions: assumptions(features),
        },
        Operations: calls.map(({ plugin, operation: { name, on } }) => ({
          Plugin: plugin,
          Name: name,
          Method: on.method,
          Route: routeOf(on),
        })),
      }
    },
  })
}

/** As it would be asked for: `/{Bucket}/{Key}?x-deal=`. */
function routeOf(on: Row['operation']['on']): string {
  const places = { service: on.path ?? '/', bucket: '/{Bucket}', object: '/{Bucket}/{Key}' }
  return places[on.resource] + (on.query?.length ? `?${on.query.map((name) => `${name}=`).join('&')}` : '')
}

/** What follows from an ability that the gateway does not advertise. */
function assumptions(features: GatewayFeatures): string[] {
  return [
    features.dealTokens
      ? undefined
      : 'A deal whose answer was lost is looked for in the list of deals, by provider, price, duration and time.',
    features.dealStatus ? undefined : 'The state of a deal cannot be asked for: it is known as recorded.',
    features.dealEviction ? undefined : 'No local copy is ever given up: every archived object stays readable.',
    features.pagedListing ? undefined : 'Listings are put together from levels that come unsorted and unpaged.',
    features.anyKey ? undefined : 'Keys that cannot be names of files are refused.',
    features.fixedBuckets
      ? undefined
      : 'A bucket that is deleted and made again on the gateway itself is taken for the one that it was.',
  ].filter((text) => text !== undefined)
}

import { defineCall, type GatewayFeatures, type Operation, type OperationRow, targetText, z } from 'dealgate/plugin'

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
 * Defines the call that describes what this server can do with its gateway, so that clients need not try: the extension
 * calls, the storage classes, and the assumptions about the gateway.
 * @param rows returns all operations, once the table exists
 */
export function capabilitiesOperation(rows: () => readonly OperationRow[]): Operation<'service'> {
  return defineCall({
    name: 'GetCapabilities',
    source: 'docs/extensions.md#capabilities',
    summary: 'Describes what the server can do: its calls, its storage classes and the features of its gateway.',
    access: 'signed',
    on: { method: 'GET', resource: 'service', path: '/-/capabilities' },
    ownRules: true,
    result,
    async answer(_, context) {
      const features = await context.gateway.features()
      const calls = rows().filter(({ operation }) => operation.call)
      return {
        Region: context.server.region,
        Plugins: [...new Set(calls.map(({ plugin }) => plugin))].map((Name) => ({ Name, ApiVersion: '1' })),
        StorageClasses: [...context.plugins.storageClasses.keys()],
        Gateway: {
          Variant: features.objectHead ? ('full' as const) : ('legacy' as const),
          Features: Object.entries(features).flatMap(([name, has]) => (has ? [name] : [])),
          Assumptions: assumptions(features),
        },
        Operations: calls.map(({ plugin, operation }) => ({
          Plugin: plugin,
          Name: operation.name,
          Method: operation.on.method,
          Route: targetText(operation),
        })),
      }
    },
  })
}

/** Describes the consequences of features that the gateway does not advertise. */
function assumptions(features: GatewayFeatures): string[] {
  return [
    features.dealTokens
      ? undefined
      : 'A deal whose answer was lost is identified in the list of deals by provider, price, duration and time.',
    features.dealStatus ? undefined : 'The gateway does not report the state of a deal: the recorded state is shown.',
    features.dealEviction ? undefined : 'Local copies are never evicted: every archived object stays readable.',
    features.pagedListing
      ? undefined
      : 'Listings are assembled from levels that the gateway returns unsorted and unpaged.',
    features.anyKey ? undefined : 'Keys that cannot be names of files are refused.',
    features.fixedBuckets
      ? undefined
      : 'A bucket that is deleted and created again directly on the gateway counts as the same bucket.',
  ].filter((text) => text !== undefined)
}

const plugin = z.object({
  Name: z.string(),
  Operations: z.number().int().describe('Number of all its operations, including those of S3.'),
  Calls: z.array(z.string()).describe('Names of its calls.').meta({ element: 'Call' }),
  Actions: z
    .array(z.string())
    .describe('Actions of its own that policies can name: `<plugin>:<name>` of most calls.')
    .meta({ element: 'Action' }),
})

/**
 * Defines the call that lists the plugins of this server.
 * @param rows returns all operations, once the table exists
 */
export function listPlugins(rows: () => readonly OperationRow[]): Operation<'service'> {
  return defineCall({
    name: 'ListPlugins',
    source: 'docs/extensions.md#capabilities',
    summary: 'Lists the plugins that run, and the names and actions of their calls.',
    access: 'signed',
    on: { method: 'GET', resource: 'service', path: '/-/plugins/v1' },
    ownRules: true,
    pages: 'Plugins',
    result: z.object({ Plugins: z.array(plugin).meta({ element: 'Plugin' }) }),
    async answer(_, { plugins }) {
      const names = [...new Set(rows().map((row) => row.plugin))]
      return { Plugins: names.map((name) => pluginDocument(name, rows(), plugins.actions)) }
    },
  })
}

function pluginDocument(
  name: string,
  rows: readonly OperationRow[],
  actions: readonly string[],
): z.output<typeof plugin> {
  const own = rows.filter((row) => row.plugin === name).map(({ operation }) => operation)
  return {
    Name: name,
    Operations: own.length,
    Calls: own.filter(({ call }) => call).map((operation) => operation.name),
    Actions: actions.filter((action) => action.startsWith(`${name}:`)),
  }
}

import { z } from 'zod'
import { defineCall } from '../extension/define-call.js'
import type { Operation } from '../registry/operation.js'
import type { Row } from '../registry/table.js'

const plugin = z.object({
  Name: z.string(),
  Operations: z.number().int().describe('How many it has in all, those of S3 too.'),
  Calls: z
    .array(z.string())
    .describe('Names of its calls, which are actions with the name of the plugin before them.')
    .meta({ element: 'Call' }),
})

/**
 * The plugins that run in this server.
 * @param rows all operations there are, known once the table is made
 */
export function listPlugins(rows: () => readonly Row[]): Operation<'service'> {
  return defineCall({
    name: 'ListPlugins',
    source: 'docs/extensions.md#capabilities',
    summary: 'Tells which plugins run, and the names of their calls.',
    on: { method: 'GET', resource: 'service', path: '/-/plugins/v1' },
    ownRules: true,
    result: z.object({ Plugins: z.array(plugin).meta({ element: 'Plugin' }) }),
    async answer() {
      const names = [...new Set(rows().map((row) => row.plugin))]
      return { Plugins: names.map((name) => describe(name, rows())) }
    },
  })
}

function describe(name: string, rows: readonly Row[]): z.output<typeof plugin> {
  const own = rows.filter((row) => row.plugin === name).map(({ operation }) => operation)
  return {
    Name: name,
    Operations: own.length,
    Calls: own.filter(({ call }) => call).map((operation) => operation.name),
  }
}

import { z } from 'zod'
import { defineCall } from '../../calls/define-call.js'
import type { Operation } from '../../forms/operation.js'
import type { Row } from '../../table/table.js'

const plugin = z.object({
  Name: z.string(),
  Operations: z.number().int().describe('Number of all its operations, including those of S3.'),
  Calls: z
    .array(z.string())
    .describe('Names of its calls. The action of a call is `<plugin>:<name>`.')
    .meta({ element: 'Call' }),
})

/**
 * Defines the call that lists the plugins of this server.
 * @param rows returns all operations, once the table exists
 */
export function listPlugins(rows: () => readonly Row[]): Operation<'service'> {
  return defineCall({
    name: 'ListPlugins',
    source: 'docs/extensions.md#capabilities',
    summary: 'Lists the plugins that run, and the names of their calls.',
    access: 'signed',
    on: { method: 'GET', resource: 'service', path: '/-/plugins/v1' },
    ownRules: true,
    pages: 'Plugins',
    result: z.object({ Plugins: z.array(plugin).meta({ element: 'Plugin' }) }),
    async answer() {
      const names = [...new Set(rows().map((row) => row.plugin))]
      return { Plugins: names.map((name) => pluginDocument(name, rows())) }
    },
  })
}

function pluginDocument(name: string, rows: readonly Row[]): z.output<typeof plugin> {
  const own = rows.filter((row) => row.plugin === name).map(({ operation }) => operation)
  return {
    Name: name,
    Operations: own.length,
    Calls: own.filter(({ call }) => call).map((operation) => operation.name),
  }
}

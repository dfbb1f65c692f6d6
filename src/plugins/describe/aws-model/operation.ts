import { z } from 'zod'
import { S3Error } from '../../../common/errors/s3-error.js'
import type { Document } from '../../calls/declare/call.js'
import { defineCall } from '../../calls/define-call.js'
import type { Operation } from '../../forms/operation.js'
import type { Row } from '../../table/table.js'
import { describeForAws } from './describe.js'
import { describePaginators } from './paginators.js'

const member = z.record(z.string(), z.unknown())

/** Defines the call that describes the calls of plugins for the AWS CLI. */
export function awsModelOperation(rows: () => readonly Row[]): Operation<'service'> {
  return describing(rows, {
    name: 'DescribeExtensionsForAws',
    summary: 'Describes the calls beyond S3 as a service model for the AWS CLI and boto3.',
    path: '/-/aws-model.json',
    result: z.object({
      version: z.string(),
      metadata: member,
      documentation: z.string(),
      operations: member,
      shapes: member,
    }),
    describe: describeForAws,
  })
}

/** Defines the call that describes which calls answer in pages, and how clients request the next page. */
export function awsPaginatorsOperation(rows: () => readonly Row[]): Operation<'service'> {
  return describing(rows, {
    name: 'DescribePaginatorsForAws',
    summary:
      'Describes for the AWS CLI and boto3 which of these calls answer in pages, and how to request the next page.',
    path: '/-/aws-paginators.json',
    result: z.object({ pagination: member }),
    describe: describePaginators,
  })
}

interface Description<Result extends Document> {
  readonly name: string
  readonly summary: string
  readonly path: string
  readonly result: z.ZodType<Result>
  describe(rows: readonly Row[], plugin?: string): Document
}

function describing<Result extends Document>(
  rows: () => readonly Row[],
  { name, summary, path, result, describe }: Description<Result>,
): Operation<'service'> {
  return defineCall({
    name,
    source: 'docs/extensions.md#the-aws-cli',
    summary,
    access: 'signed',
    on: { method: 'GET', resource: 'service', path },
    ownRules: true,
    presignable: true,
    jsonOnly: true,
    query: z.strictObject({
      plugin: z.string().optional().describe('The plugin whose calls are described; all by default.'),
    }),
    result: result as z.ZodType<Document>,
    answer: async ({ query: { plugin } }) => describe(rows(), knownPlugin(plugin, rows())),
  })
}

/** Returns undefined for all plugins. Throws InvalidArgument for a plugin that is not loaded or has no calls. */
function knownPlugin(plugin: string | undefined, rows: readonly Row[]): string | undefined {
  const plugins = [...new Set(rows.flatMap((row) => (row.operation.call ? [row.plugin] : [])))]
  if (plugin === undefined || plugins.includes(plugin)) return plugin
  throw new S3Error('InvalidArgument', {
    message: `No plugin of this name has calls. The plugins with calls are ${plugins.join(', ')}.`,
    fields: { ArgumentName: 'plugin', ArgumentValue: plugin.slice(0, 100) },
  })
}

import { S3Error } from '../errors/s3-error.js'
import { withValidators } from '../operations/common/validators.js'
import { defineOperation, type Operation } from '../registry/operation.js'
import type { Row } from '../registry/table.js'
import { describeForAws } from './describe.js'

/** Describes the calls of plugins for the AWS CLI. */
export function awsModelOperation(rows: () => readonly Row[]): Operation<'service'> {
  return defineOperation({
    name: 'DescribeExtensionsForAws',
    source: 'docs/extensions.md#the-aws-cli',
    on: { method: 'GET', resource: 'service', path: '/-/aws-model.json', params: ['plugin'], head: true },
    async run({ query }) {
      const plugin = query.get('plugin') || undefined
      const plugins = [...new Set(rows().flatMap((row) => (row.operation.call ? [row.plugin] : [])))]
      if (plugin !== undefined && !plugins.includes(plugin))
        throw new S3Error('InvalidArgument', {
          message: `There is no such plugin with calls of its own: there are ${plugins.join(', ')}.`,
          fields: { ArgumentName: 'plugin', ArgumentValue: plugin.slice(0, 100) },
        })
      const body = `${JSON.stringify(describeForAws(rows(), plugin))}\n`
      return withValidators({ status: 200, headers: { 'content-type': 'application/json' }, body })
    },
  })
}

import { definePlugin } from 'dealgate/plugin'
import { awsModelOperation, awsPaginatorsOperation } from './aws-model.js'
import { capabilitiesOperation, listPlugins } from './capabilities.js'
import { openApiOperation, withExpansions } from './openapi.js'
import { virtualBucketOperations } from './virtual-bucket.js'

/** The operations by which the server describes itself. */
export default definePlugin({
  name: 'self',
  standard: true,
  summary: 'Descriptions of the server: its calls as OpenAPI and for the AWS CLI, and its resources as a bucket.',
  create(_, host) {
    const rows = () => host.operations()
    const described = () => withExpansions(rows(), host.own.plugins.expansions)
    return {
      operations: [
        ...virtualBucketOperations(rows),
        openApiOperation(described),
        awsModelOperation(described),
        awsPaginatorsOperation(rows),
        capabilitiesOperation(rows),
        listPlugins(rows),
      ],
    }
  },
})

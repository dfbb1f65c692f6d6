import { awsModelOperation, awsPaginatorsOperation } from '../../plugins/describe/aws-model/operation.js'
import { listPlugins } from '../../plugins/describe/capabilities/list-plugins.js'
import { capabilitiesOperation } from '../../plugins/describe/capabilities/operation.js'
import { openApiOperation } from '../../plugins/describe/openapi/operation.js'
import type { Plugin } from '../../plugins/forms/plugin.js'
import type { Row } from '../../plugins/table/table.js'
import { virtualBucketOperations } from './operations.js'

/**
 * The operations by which the server describes itself: its resources as a bucket, and the descriptions of its calls.
 * @param rows returns all operations, once the table exists
 */
export function selfPlugin(rows: () => readonly Row[]): Plugin {
  return {
    name: 'self',
    operations: [
      ...virtualBucketOperations(rows),
      openApiOperation(rows),
      awsModelOperation(rows),
      awsPaginatorsOperation(rows),
      capabilitiesOperation(rows),
      listPlugins(rows),
    ],
  }
}

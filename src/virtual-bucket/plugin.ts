import { awsModelOperation } from '../aws-model/operation.js'
import { listPlugins } from '../capabilities/list-plugins.js'
import { capabilitiesOperation } from '../capabilities/operation.js'
import { openApiOperation } from '../openapi/operation.js'
import type { Plugin } from '../registry/plugin.js'
import type { Row } from '../registry/table.js'
import { virtualBucketOperations } from './operations.js'

/**
 * What the server tells of itself: its resources as a bucket, and as a description.
 * @param rows all operations there are, known once the table is made
 */
export function selfPlugin(rows: () => readonly Row[]): Plugin {
  return {
    name: 'self',
    operations: [
      ...virtualBucketOperations(rows),
      openApiOperation(rows),
      awsModelOperation(rows),
      capabilitiesOperation(rows),
      listPlugins(rows),
    ],
  }
}

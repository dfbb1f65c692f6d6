import { awsModelOperation, awsPaginatorsOperation } from '../../plugins/describe/aws-model/operation.js'
import { listPlugins } from '../../plugins/describe/capabilities/list-plugins.js'
import { capabilitiesOperation } from '../../plugins/describe/capabilities/operation.js'
import { openApiOperation } from '../../plugins/describe/openapi/operation.js'
import { withExpansions } from '../../plugins/describe/with-expansions.js'
import type { Expansion } from '../../plugins/forms/expansion.js'
import type { Plugin } from '../../plugins/forms/plugin.js'
import type { Row } from '../../plugins/table/table.js'
import { getHealth } from '../service/get-health.js'
import { virtualBucketOperations } from './operations.js'

/**
 * The operations by which the server describes itself: its resources as a bucket, and the descriptions of its calls.
 * @param rows returns all operations, once the table exists
 * @param expansions returns the meanings of values of `expand`
 */
export function selfPlugin(rows: () => readonly Row[], expansions: () => readonly Expansion[] = () => []): Plugin {
  const described = () => withExpansions(rows(), expansions())
  return {
    name: 'self',
    operations: [
      ...virtualBucketOperations(rows),
      openApiOperation(described),
      awsModelOperation(described),
      awsPaginatorsOperation(rows),
      capabilitiesOperation(rows),
      listPlugins(rows),
      getHealth,
    ],
  }
}

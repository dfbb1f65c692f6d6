import { shapeOf } from '../../calls/codec/shape.js'
import type { CallFacts } from '../../calls/declare/call.js'
import type { Row } from '../../table/table.js'
import { pageMembers } from './describe.js'
import { namedCalls } from './names.js'

/**
 * Describes which calls of the model answer in pages, in the form of botocore's `paginators-1.json`:
 * https://botocore.amazonaws.com/v1/documentation/api/latest/topics/paginators.html With this file beside the model, in
 * the folder of the service, the AWS CLI and boto3 fetch all pages by themselves.
 * @param plugin the plugin whose calls are described; undefined for all
 */
export function describePaginators(rows: readonly Row[], plugin?: string): Readonly<Record<string, unknown>> {
  const paged = namedCalls(rows, plugin).filter(({ call }) => call.pages !== undefined)
  return {
    pagination: Object.fromEntries(
      paged.map(({ name, call }) => [
        name,
        {
          input_token: pageMembers.token,
          limit_key: pageMembers.size,
          more_results: pageMembers.more,
          output_token: pageMembers.next,
          result_key: call.pages,
          // Members that are the same on every page, such as the bucket.
          non_aggregate_keys: [...membersOf(call)].filter((member) => member !== call.pages),
        },
      ]),
    ),
  }
}

function membersOf({ result }: CallFacts): Iterable<string> {
  const shape = shapeOf(result, 'output')
  return shape.kind === 'object' ? shape.members.keys() : []
}

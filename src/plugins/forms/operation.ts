import type { Operation, OperationAccess } from '../../api/operation.js'
import type { Resource } from '../../api/request.js'

export const ACCESSES: readonly OperationAccess[] = ['signed', 'bearer', 'anonymous', 'public', 'owner']

/** Types an operation; returns it unchanged. */
export function defineOperation<R extends Resource>(operation: Operation<R>): Operation<R> {
  return operation
}

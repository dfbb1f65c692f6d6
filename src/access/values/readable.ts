import type { AnyOperation } from '../../api/operation.js'
import type { RequestHead } from '../../api/request.js'
import { requireHeaders } from './header-values.js'
import { listValue, readVersionId } from './query-values.js'

/**
 * Refuses a request with a header or parameter that a condition key shows and the operation could not read.
 * @throws S3Error as `requireHeaders`, InvalidArgument for a parameter
 */
export function requireReadable({ headers, query }: RequestHead, { on, call }: AnyOperation): void {
  requireHeaders(headers)
  if (call || query.entries.length === 0) return
  const versionId = on.params?.includes('versionId') ? query.get('versionId') : undefined
  if (versionId !== undefined) readVersionId(versionId)
  if (on.params?.includes('max-keys')) listValue(query, 'max-keys')
}

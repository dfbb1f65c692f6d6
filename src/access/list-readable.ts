import { compareUtf8 } from '../../common/byte-order.js'
import { S3Error } from '../../common/errors/s3-error.js'
import type { Gateway, ListEntry, ListPage, ListQuery } from '../api/gateway.js'

/**
 * Lists a bucket for a caller that may read only keys with certain prefixes: the part of the full listing with those
 * keys and, with a delimiter, the common prefixes that lead to them. Throws AccessDenied if the listing cannot contain
 * any of them.
 * @param readable prefixes in UTF-8 byte order, none of them below another, so that all keys below one come before
 * those below the next
 */
export async function listReadable(
  gateway: Gateway,
  readable: readonly string[],
  bucket: string,
  query: ListQuery,
): Promise<ListPage> {
  if (readable.some((prefix) => query.prefix.startsWith(prefix))) return gateway.list(bucket, query)
  const below = readable.filter((prefix) => prefix.startsWith(query.prefix))
  if (below.length === 0) {
    throw new S3Error('AccessDenied', { message: 'This access key has no right to list this bucket with this prefix.' })
  }
  const entries: ListEntry[] = []
  for (const prefix of below) {
    const wanted = query.limit + 1 - entries.length
    if (wanted === 0) break
    entries.push(...(await part(gateway, bucket, query, prefix, entries.at(-1), wanted)))
  }
  return { entries: entries.slice(0, query.limit), truncated: entries.length > query.limit }
}

/** Returns up to `limit` entries below one readable prefix, as they appear in the full listing. */
async function part(
  gateway: Gateway,
  bucket: string,
  query: ListQuery,
  prefix: string,
  last: ListEntry | undefined,
  limit: number,
): Promise<readonly ListEntry[]> {
  const { delimiter, after } = query
  const group = groupOf(prefix, query)
  if (group !== undefined) {
    const known = last?.kind === 'prefix' && last.prefix === group
    if (known || compareUtf8(group, after) <= 0) return []
    const { entries } = await gateway.list(bucket, { prefix, delimiter: '', after: '', limit: 1 })
    return entries.length === 0 ? [] : [{ kind: 'prefix', prefix: group }]
  }
  const passed = compareUtf8(after, prefix) >= 0
  if (passed && !after.startsWith(prefix)) return []
  const { entries } = await gateway.list(bucket, { prefix, delimiter, after: passed ? after : '', limit })
  return entries
}

/**
 * Returns the common prefix that all keys below `prefix` have in the full listing; undefined if it depends on the keys.
 */
function groupOf(prefix: string, query: ListQuery): string | undefined {
  const { delimiter } = query
  if (delimiter === '') return undefined
  const at = prefix.indexOf(delimiter, query.prefix.length)
  if (at >= 0) return prefix.slice(0, at + delimiter.length)
  for (let length = 1; length < delimiter.length; length++) {
    if (prefix.slice(query.prefix.length).endsWith(delimiter.slice(0, length))) {
      throw new S3Error('NotImplemented', {
        message: 'With this delimiter, this access key can list only below the prefixes that it may read.',
      })
    }
  }
  return undefined
}

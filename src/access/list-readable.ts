import { compareUtf8 } from '../common/byte-order.js'
import { S3Error } from '../errors/s3-error.js'
import type { Gateway, ListEntry, ListPage, ListQuery } from '../gateway/gateway.js'

/**
 * A listing for somebody who may read only the keys with certain prefixes: what a wider listing has of those, and with a delimiter the common prefixes that lead
 * to them. Where there can be none of them, AccessDenied.
 * @param readable in UTF-8 byte order, none of them below another; the keys below one come all before those below the next
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

/** Up to `limit` entries of what lies below one readable prefix, as they look in the wider listing. */
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

/** The common prefix that everything below `prefix` has in the wider listing; undefined when the keys' own names decide. */
function groupOf(prefix: string, query: ListQuery): string | undefined {
  const { delimiter } = query
  if (delimiter === '') return undefined
  const at = prefix.indexOf(delimiter, query.prefix.length)
  if (at >= 0) return prefix.slice(0, at + delimiter.length)
  for (let length = 1; length < delimiter.length; length++) {
    if (prefix.slice(query.prefix.length).endsWith(delimiter.slice(0, length))) {
      throw new S3Error('NotImplemented', {
        message: 'With this delimiter this access key can only list below the prefixes that it may read.',
      })
    }
  }
  return undefined
}

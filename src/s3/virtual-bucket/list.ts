import { createHash } from 'node:crypto'
import pMap from 'p-map'
import { compareUtf8 } from '../../common/byte-order.js'
import { S3Error } from '../../common/errors/s3-error.js'
import type { ListQuery } from '../../gateway/gateway.js'
import type { StoreEntry, StorePage } from '../../objects/store.js'
import type { S3Request } from '../../request/s3-request.js'
import type { Context } from '../../server/context.js'
import { bareRequest } from './bare-request.js'
import { type Readable, type Resource, resourcesBelow } from './resources.js'

/** Largest number of resources per page. Each is read, to determine its size and ETag. */
const PAGE = 100
const CONCURRENCY = 4
/** Largest number of names that a listing sorts in memory; more are refused. */
const MAX_NAMES = 100_000

/** Lists a page of the bucket `-`. Throws S3Error. */
export async function listResources(
  all: readonly Readable[],
  query: ListQuery,
  request: S3Request,
  context: Context,
): Promise<StorePage> {
  const names = await namesOf(all, query, context)
  const wanted = [...names.keys()].filter((name) => comesAfter(name, query)).sort(compareUtf8)
  const page = wanted.slice(0, Math.min(query.limit, PAGE))
  const entries: (StoreEntry | undefined)[] = []
  await pMap(
    [...page.entries()],
    async ([i, name]) => {
      const resource = names.get(name)
      entries[i] = resource ? await read(resource, request, context) : { kind: 'prefix', prefix: name }
    },
    { concurrency: CONCURRENCY },
  )
  return { entries: entries.filter((entry) => entry !== undefined), truncated: wanted.length > page.length }
}

/** Returns the entries by name: a resource, or undefined for a common prefix. */
async function namesOf(
  all: readonly Readable[],
  { prefix, delimiter }: ListQuery,
  context: Context,
): Promise<Map<string, Resource | undefined>> {
  const names = new Map<string, Resource | undefined>()
  const common = (key: string) => {
    const at = delimiter === '' ? -1 : key.indexOf(delimiter, prefix.length)
    return at < 0 ? undefined : key.slice(0, at + delimiter.length)
  }
  for (const readable of all) {
    // A common prefix of all of them needs no enumeration.
    const shared = readable.head.startsWith(prefix) ? common(readable.head) : undefined
    if (shared !== undefined) {
      names.set(shared, undefined)
      continue
    }
    for await (const resource of resourcesBelow(readable, prefix, context)) {
      const group = common(resource.key)
      names.set(group ?? resource.key, group === undefined ? resource : undefined)
      if (names.size > MAX_NAMES)
        throw new S3Error('SlowDown', { message: `More than ${MAX_NAMES} resources: list below a longer prefix.` })
    }
  }
  return names
}

/** A common prefix that contains `after` was on the previous page. */
function comesAfter(name: string, { after }: ListQuery): boolean {
  return after === '' || compareUtf8(name, after) > 0
}

/** Reads a resource; undefined if it no longer exists or the caller may not read it. */
async function read(resource: Resource, request: S3Request, context: Context): Promise<StoreEntry | undefined> {
  const { key, operation } = resource
  try {
    const reply = await (operation.run as (request: S3Request, context: Context) => ReturnType<typeof operation.run>)(
      bareRequest(request, { ...resource, path: `/-/${key.split('/').map(encodeURIComponent).join('/')}` }),
      context,
    )
    if (reply.status !== 200 || (typeof reply.body !== 'string' && !Buffer.isBuffer(reply.body))) return undefined
    const body = Buffer.from(reply.body)
    return {
      kind: 'object',
      key,
      size: body.length,
      etag: createHash('md5').update(body).digest('hex'),
      lastModified: new Date().toISOString(),
      cold: false,
    }
  } catch (error) {
    if (error instanceof S3Error) return undefined
    throw error
  }
}

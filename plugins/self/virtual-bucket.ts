import { createHash } from 'node:crypto'
import {
  type AnyOperation,
  bucketReads,
  type Context,
  compareUtf8,
  type ListQuery,
  type Operation,
  type OperationRow,
  Query,
  reply,
  S3Error,
  type S3Request,
  type StoreEntry,
  type StorePage,
} from 'dealgate/plugin'
import pMap from 'p-map'

const SOURCE = 'docs/extensions.md#the-virtual-bucket'

/** Some clients append a slash to the bucket's path. */
const PATHS = ['/-', '/-/'] as const

/**
 * Operations on the virtual bucket `-`, an impossible bucket name: it shows what is readable below `/-/` to clients
 * that know only S3. They are the operations of a bucket, with other content.
 * @param rows returns all operations, including these, once the table exists
 */
export function virtualBucketOperations(rows: () => readonly OperationRow[]): AnyOperation[] {
  const over = (context: Context, request: S3Request): Context => {
    const gateway: Context['gateway'] = { ...context.gateway, bucketExists: async () => true }
    const list: Context['store']['list'] = (_, query) => listResources(readables(rows()), query, request, context)
    const changed = { gateway, store: { ...context.store, list } }
    // A member of a context is made when it is asked for.
    return new Proxy(context, { get: (target, name) => Reflect.get(name in changed ? changed : target, name) })
  }
  const onService = (path: string, suffix: string, operation: Operation<'bucket'>): Operation<'service'> => ({
    name: `${operation.name}OfService${suffix}`,
    source: SOURCE,
    access: 'signed',
    action: 'none',
    on: { ...operation.on, resource: 'service', path },
    run: (request, context) =>
      operation.run(
        { ...request, resource: 'bucket', bucket: '-', key: undefined, signal: request.signal },
        over(context, request),
      ),
  })
  return PATHS.flatMap((path, i) => {
    const suffix = i === 0 ? '' : 'Root'
    return [
      ...bucketReads.map((operation) => onService(path, suffix, operation)),
      {
        name: `CreateBucketOfService${suffix}`,
        source: SOURCE,
        // rclone creates a bucket before it copies to it.
        access: 'signed',
        action: 'none',
        on: { method: 'PUT', resource: 'service', path },
        run: async () => reply.empty({ location: '/-' }),
      } satisfies Operation<'service'>,
    ]
  })
}

/** Most resources on a page. Each is read, to determine its size and ETag. */
const MAX_PAGE = 100
const MAX_CONCURRENCY = 4

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
  const page = wanted.slice(0, Math.min(query.limit, MAX_PAGE))
  const entries: (StoreEntry | undefined)[] = []
  await pMap(
    [...page.entries()],
    async ([i, name]) => {
      const resource = names.get(name)
      entries[i] = resource ? await read(resource, request, context) : { kind: 'prefix', prefix: name }
    },
    { concurrency: MAX_CONCURRENCY },
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

const ROOT = '/-/'

/** A readable path below `/-/`, as the virtual bucket `-` shows it. */
interface Readable {
  /** Key in the virtual bucket, with `{Name}` for variable parts: `jobs/v1/{JobId}`. */
  readonly template: string
  /** The part of the template before the first `{`. */
  readonly head: string
  readonly operation: AnyOperation
  /** Name of the plugin of the operation. */
  readonly plugin: string
}

/** An existing resource. */
interface Resource {
  readonly key: string
  readonly operation: AnyOperation
  readonly plugin: string
  readonly params: Readonly<Record<string, string>>
}

/** Returns every GET below `/-/` whose names can be enumerated. */
export function readables(rows: readonly OperationRow[]): Readable[] {
  return rows.flatMap(({ operation, plugin }) => {
    const { method, resource, path = '/', query } = operation.on
    if (method !== 'GET' || resource !== 'service' || !path.startsWith(ROOT) || path === ROOT || query) return []
    const template = path.slice(ROOT.length)
    if (template.includes('{') && !operation.call?.members) return []
    return [{ template, head: template.split('{')[0] as string, operation, plugin }]
  })
}

/** Yields the resources with the prefix that the caller may see, in no particular order. */
async function* resourcesBelow(readable: Readable, prefix: string, context: Context): AsyncGenerator<Resource, void> {
  const { template, head, operation, plugin } = readable
  if (!head.startsWith(prefix) && !prefix.startsWith(head)) return
  if (!template.includes('{')) {
    if (template.startsWith(prefix)) yield { key: template, operation, plugin, params: {} }
    return
  }
  for await (const params of operation.call?.members?.(context) ?? []) {
    if (!Object.values(params).every(isSegment)) continue
    const key = template.replace(/\{([^}]+)\}/g, (_, name: string) => params[name] ?? '')
    if (key.startsWith(prefix)) yield { key, operation, plugin, params }
  }
}

/**
 * Returns false for a name that S3 clients cannot send as part of a key: they do not encode slashes, and some resolve
 * dots.
 */
function isSegment(name: string): boolean {
  return name !== '' && name !== '.' && name !== '..' && !name.includes('/')
}

/** Returns a plain GET of another resource of the service, by the caller of `request`. */
function bareRequest(
  request: S3Request,
  { path, plugin, params }: Pick<S3Request, 'path' | 'plugin' | 'params'>,
): S3Request<'service'> {
  return {
    ...request,
    method: 'GET',
    resource: 'service',
    path,
    query: new Query(''),
    headers: {},
    bucket: undefined,
    key: undefined,
    params,
    plugin,
    get signal() {
      return request.signal
    },
  }
}

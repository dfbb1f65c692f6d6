import { z } from 'zod'
import type { Account } from '../accounts/accounts.js'
import { type KeyPair, MIN_ACCESS_KEY, MIN_SECRET_KEY } from '../accounts/key-pair.js'
import type { GatewayContext } from '../context.js'
import { GatewayError } from '../errors.js'
import { listing } from '../rpc/list-objects.js'
import { defineSignedMethod, type RpcCall, type RpcMethod } from '../rpc/method.js'
import { methods } from '../rpc/methods.js'
import { mustMayRemove } from '../rpc/objects.js'
import { noParams, type RpcRequest, readRequest } from '../rpc/protocol.js'
import { logIn } from '../rpc/server.js'
import type { BucketRow } from '../store/buckets.js'
import { LegacyError, ListingRefused } from './errors.js'
import { clean, type FolderKeys } from './folder-keys.js'
import { listFormOf } from './list-form.js'
import type { QuirkName } from './quirks.js'

type Quirks = ReadonlySet<QuirkName>

/** Changes a method of the interface. */
type Change = (method: RpcMethod) => RpcMethod

/** The methods as a gateway with these quirks has them, by the names that clients call. */
export function methodsOf(quirks: Quirks, keys: FolderKeys): ReadonlyMap<string, RpcMethod> {
  const changed = new Map(methods)
  const change = (name: string, by: Change) => changed.set(name, by(changed.get(name) as RpcMethod))

  if (quirks.has('moving-creation-date')) change('web.ListBuckets', () => listBucketsMoving)
  if (quirks.has('telling-log-ins')) change('web.Login', () => logIn(tellingly))
  if (LISTING.some((quirk) => quirks.has(quirk))) change('web.ListObjects', () => listing(listFormOf(quirks)))
  change('web.ListObjects', failing(refusedListing))
  if (quirks.has('missing-bucket-texts')) {
    const missing = (name: 'NoSuchBucketInListing' | 'NoSuchBucketUnnamed') =>
      failing(({ kind, subject }) =>
        kind === 'NoSuchBucket' || kind === 'InvalidBucketName' ? new LegacyError(name, subject) : undefined,
      )
    change('web.ListObjects', missing('NoSuchBucketInListing'))
    change('web.ListAllBucketPolicies', missing('NoSuchBucketUnnamed'))
  }
  if (quirks.has('taken-names')) {
    change(
      'web.MakeBucket',
      failing(({ kind, subject }) => (kind === 'BucketTaken' ? new GatewayError('BucketExists', subject) : undefined)),
    )
  }
  if (REMOVING.some((quirk) => quirks.has(quirk))) change('web.RemoveObject', removing(quirks, keys))
  if (quirks.has('strict-keys')) change('web.PresignedGet', asking(cleanPath))
  if (quirks.has('null-arrays')) {
    change('web.ListBuckets', answering(nullFor('buckets')))
    change('web.ListAllBucketPolicies', answering(nullFor('policies')))
  }
  if (!quirks.has('capital-service-word')) return changed
  return new Map([...changed].map(([name, method]) => [name.replace(/^web\./, 'Web.'), method]))
}

const LISTING: readonly QuirkName[] = [
  ...(['one-level-listing', 'unsorted-listing', 'null-arrays', 'year-one-prefixes', 'folder-prefixes'] as const),
  ...(['erasure-folders', 'root-name-listings', 'fs-json-listings', 'strict-keys'] as const),
]

const REMOVING: readonly QuirkName[] = ['recursive-remove', 'folder-prefixes', 'erasure-folders']

/** How a gateway with these quirks reads a call. */
export function callReaderOf(quirks: Quirks): (message: unknown) => RpcRequest {
  if (!quirks.has('no-text-params')) return readRequest
  return (message) => {
    const call = readRequest(message)
    if (call.params === '') throw noParams()
    return call
  }
}

/** Changes the errors of a method; undefined: the error stays. */
function failing(as: (error: GatewayError) => GatewayError | undefined): Change {
  return (method) => ({
    ...method,
    async run(params, call) {
      try {
        return await method.run(params, call)
      } catch (error) {
        throw (error instanceof GatewayError ? as(error) : undefined) ?? error
      }
    },
  })
}

/** Changes the params of a method. */
function asking(as: (params: Record<string, unknown>) => Record<string, unknown>): Change {
  return (method) => ({ ...method, run: (params, call) => method.run(as(params), call) })
}

/** Changes the result of a method that answers with members. */
function answering(as: (result: Record<string, unknown>) => Record<string, unknown>): Change {
  return (method) => ({
    ...method,
    run: async (params, call) => as((await method.run(params, call)) as Record<string, unknown>),
  })
}

function nullFor(member: string): (result: Record<string, unknown>) => Record<string, unknown> {
  return (result) => ((result[member] as unknown[]).length === 0 ? { ...result, [member]: null } : result)
}

function refusedListing(error: GatewayError): GatewayError | undefined {
  return error.kind === 'NotPermitted' ? new ListingRefused(error) : undefined
}

function cleanPath(params: Record<string, unknown>): Record<string, unknown> {
  const { bucket, object } = params
  if (bucket === '' || object === '') return params
  const [, ...elements] = clean(`/${bucket}/${object}`).split('/')
  // A path of slashes alone has no other form.
  if (elements.length < 2) return params
  return { ...params, bucket: elements[0], object: elements.slice(1).join('/') }
}

const listBucketsMoving = defineSignedMethod({
  name: 'web.ListBuckets',
  params: z.object({}),
  async run(_, { context: { db }, account }) {
    const rows = await db.read.buckets.of(account.id)
    return { buckets: rows.map(({ name, changed }) => ({ name, creationDate: changed })) }
  },
})

function tellingly({ accessKey, secretKey }: KeyPair, named: Account | undefined): GatewayError {
  if (accessKey.length < MIN_ACCESS_KEY) return new GatewayError('ShortAccessKey')
  if (secretKey.length < MIN_SECRET_KEY) return new GatewayError('ShortSecretKey')
  if (named === undefined) return new LegacyError('UnknownAccessKey')
  return new GatewayError('Authentication')
}

/** Removes what names stand for on a file system. A call that names a version is ours. */
function removing(quirks: Quirks, keys: FolderKeys): Change {
  return (method) => ({
    ...method,
    async run(params: RemovalParams, call: RpcCall) {
      if (GUARDS.some((name) => params[name] !== undefined)) return method.run(params, call)
      const { bucketName, objects } = params
      const { context } = call
      const bucket = await mustMayRemove(call, bucketName, objects)
      if (quirks.has('recursive-remove')) {
        await removeLikeFolders(context, keys, bucket, objects)
        return {}
      }
      if (objects.includes('')) throw new GatewayError('InvalidArguments')
      await context.store.remove(
        bucket,
        objects.flatMap((name) => keys.removable(name) ?? []),
      )
      return {}
    },
  })
}

interface RemovalParams {
  readonly bucketName: string
  readonly objects: readonly string[]
  readonly versionId?: string
  readonly noncurrentSince?: string | number
  readonly newerNoncurrent?: number
  readonly alone?: boolean
}

/** What public gateways do not have: the method without quirks does as they ask, or refuses them. */
const GUARDS = ['versionId', 'noncurrentSince', 'newerNoncurrent', 'alone'] as const

/**
 * Removes as public gateways do: a name ending in a slash removes all objects beneath it and ends the list, as does a
 * missing object (MinIO cmd/web-handlers.go, `RemoveObject`).
 */
async function removeLikeFolders(
  { store }: GatewayContext,
  keys: FolderKeys,
  bucket: BucketRow,
  names: readonly string[],
): Promise<void> {
  for (const name of names) {
    if (name === '' || name.endsWith('/')) {
      await store.removeBeneath(bucket, Buffer.from(name), (key) => keys.removable(key.toString()) !== undefined)
      return
    }
    const key = keys.removable(name)
    if (key === undefined || (await store.remove(bucket, [key])) === 0) return
  }
}

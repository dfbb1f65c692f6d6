import { unless } from '../../common/errors/s3-error.js'
import { parseJson } from '../../common/json.js'
import type { Gateway } from '../../src/api/gateway.js'

/** Calls that only read. Unknown calls may write. */
const READS = new Set([
  'web.BucketVersioning',
  'web.CreateURLToken',
  'web.ListAllBucketPolicies',
  'web.ListBuckets',
  'web.ListObjects',
  'web.ListObjectVersions',
  'web.Login',
  'web.PresignedGet',
  'web.ServerInfo',
  'web.StorageInfo',
  'web.UploadQuota',
])

/** The parts of a JSON-RPC call that determine what it may change. */
export interface RpcCall {
  /** '' if the body is not a call. */
  readonly method: string
  readonly bucket: string | undefined
}

export function readCall(body: Buffer): RpcCall {
  const call = parseJson(body.toString('utf8'))
  const params = member(call, 'params')
  const given = Array.isArray(params) ? params[0] : params
  // Older gateways name the service `Web`: see gateway/calls/rpc.ts.
  const method = (text(member(call, 'method')) ?? '').replace(/^Web\./, 'web.')
  return { method, bucket: text(member(given, 'bucketName')) }
}

export function mayChange({ method }: RpcCall): boolean {
  return !READS.has(method)
}

/**
 * Before a bucket is created, removes the data of a deleted bucket with the same name.
 * @param forget removes the data of a deleted bucket, which did not exist at that time, ms since 1970
 * @throws S3Error if the removal fails; the bucket must not be created then
 */
export async function forgetFormer(
  { method, bucket }: RpcCall,
  gateway: Pick<Gateway, 'bucketExists'>,
  forget: (bucket: string, before: number) => Promise<void>,
): Promise<void> {
  if (method !== 'web.MakeBucket' || bucket === undefined) return
  const asked = Date.now()
  // A bucket of another account exists, too; the gateway says so to the client.
  if (!(await unless('AccessDenied', gateway.bucketExists(bucket), true))) await forget(bucket, asked)
}

/** Gateways in Go match member names case-insensitively: https://pkg.go.dev/encoding/json#Unmarshal */
function member(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null) return undefined
  return Object.entries(value).findLast(([key]) => key.toLowerCase() === name.toLowerCase())?.[1]
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

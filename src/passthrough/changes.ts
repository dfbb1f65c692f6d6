import type { Gateway } from '../gateway/gateway.js'

/** Calls that only look; what is not known may write. */
const READS = new Set([
  'web.CreateURLToken',
  'web.ListAllBucketPolicies',
  'web.ListBuckets',
  'web.ListObjects',
  'web.Login',
  'web.PresignedGet',
  'web.ServerInfo',
  'web.StorageInfo',
])

/** A JSON-RPC call, as far as it says what it may change. */
export interface RpcCall {
  /** '' when the body is no call. */
  readonly method: string
  readonly bucket: string | undefined
}

export function readCall(body: Buffer): RpcCall {
  let call: unknown
  try {
    call = JSON.parse(body.toString('utf8'))
  } catch {
    call = undefined
  }
  const params = member(call, 'params')
  const given = Array.isArray(params) ? params[0] : params
  return { method: text(member(call, 'method')) ?? '', bucket: text(member(given, 'bucketName')) }
}

export function mayChange({ method }: RpcCall): boolean {
  return !READS.has(method)
}

/**
 * What a bucket of this name has left behind must not become that of the one that is about to be made. Throws S3Error when that cannot be made sure of: the bucket
 * must not be made then.
 * @param forget removes what is kept for a bucket that there is no more
 */
export async function forgetFormer(
  { method, bucket }: RpcCall,
  gateway: Pick<Gateway, 'bucketExists'>,
  forget: (bucket: string) => Promise<void>,
): Promise<void> {
  if (method !== 'web.MakeBucket' || bucket === undefined) return
  if (!(await gateway.bucketExists(bucket))) await forget(bucket)
}

/** Gateways in Go take the names of members in any case: https://pkg.go.dev/encoding/json#Unmarshal */
function member(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null) return undefined
  return Object.entries(value).findLast(([key]) => key.toLowerCase() === name.toLowerCase())?.[1]
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

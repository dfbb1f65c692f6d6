import { type Context, S3Error, type StoredObject } from 'dealgate'
import type { DealSubject } from '../deal-client.js'

const PAGE = 1000

/** Size of what a deal would pack. */
export interface Measured {
  readonly bytes: number
  readonly objects: number
  /** Objects without a copy on the gateway. */
  readonly cold: number
  /** Bytes of the objects without a copy. */
  readonly coldBytes: number
  readonly object?: StoredObject
}

/** Throws NoSuchKey, NoSuchBucket, BucketEmpty, AccessDenied. Memory does not grow with the bucket. */
export async function measure(
  context: Context,
  { bucket, key, prefix = '' }: DealSubject & { readonly prefix?: string },
  signal: AbortSignal,
): Promise<Measured> {
  if (key === undefined) return measureBucket(context, bucket, prefix, signal)
  const object = await context.store.head(bucket, key)
  const { size, cold } = object
  return { bytes: size, objects: 1, cold: cold ? 1 : 0, coldBytes: cold ? size : 0, object }
}

async function measureBucket(context: Context, bucket: string, prefix: string, signal: AbortSignal): Promise<Measured> {
  context.checks.requireWholeBucket(bucket, 'read')
  let bytes = 0
  let objects = 0
  let cold = 0
  let coldBytes = 0
  for (let after = ''; ; ) {
    signal.throwIfAborted()
    const page = await context.store.list(bucket, { prefix, delimiter: '', after, limit: PAGE })
    for (const entry of page.entries) {
      if (entry.kind !== 'object') continue
      objects++
      bytes += entry.size
      if (entry.cold) {
        cold++
        coldBytes += entry.size
      }
      after = entry.key
    }
    if (!page.truncated) break
  }
  if (objects === 0)
    throw new S3Error('BucketEmpty', {
      message: 'The bucket holds no object that a deal could be made of.',
      fields: { BucketName: bucket },
    })
  return { bytes, objects, cold, coldBytes }
}

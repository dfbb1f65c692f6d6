import type { Context } from '../../../src/context.js'
import { S3Error } from '../../../src/errors/s3-error.js'
import type { DealSubject } from '../deal-client.js'
import type { TermSources } from '../resolve-terms.js'

const PAGE = 1000

/** What a deal would be about. */
export interface Measured {
  readonly bytes: number
  readonly objects: number
  /** Objects that the gateway holds no copy of. */
  readonly cold: number
  readonly metadata?: TermSources['metadata']
}

/** Throws NoSuchKey, NoSuchBucket, BucketEmpty, AccessDenied. Memory does not grow with the bucket. */
export async function measure(context: Context, { bucket, key }: DealSubject, signal: AbortSignal): Promise<Measured> {
  if (key === undefined) return measureBucket(context, bucket, signal)
  const { size, cold, metadata } = await context.store.head(bucket, key)
  return { bytes: size, objects: 1, cold: cold ? 1 : 0, metadata }
}

async function measureBucket(context: Context, bucket: string, signal: AbortSignal): Promise<Measured> {
  context.requireWholeBucket(bucket, 'read')
  let bytes = 0
  let objects = 0
  let cold = 0
  for (let after = ''; ; ) {
    signal.throwIfAborted()
    const page = await context.store.list(bucket, { prefix: '', delimiter: '', after, limit: PAGE })
    for (const entry of page.entries) {
      if (entry.kind !== 'object') continue
      objects++
      bytes += entry.size
      if (entry.cold) cold++
      after = entry.key
    }
    if (!page.truncated) break
  }
  if (objects === 0)
    throw new S3Error('BucketEmpty', {
      message: 'The bucket holds no object that a deal could be made of.',
      fields: { BucketName: bucket },
    })
  return { bytes, objects, cold }
}

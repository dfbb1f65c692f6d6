import { setTimeout as sleep } from 'node:timers/promises'
import type { Context } from '../../../src/context.js'
import { S3Error } from '../../../src/errors/s3-error.js'
import type { JobProgress } from '../../../src/jobs/job.js'
import type { StoredObject } from '../../../src/store/store.js'
import { askBack } from './copy-calls.js'

export interface BringBackOptions {
  /** Of the object that is meant; any that is there by default. */
  readonly stamp?: string
  /** The deal to bring it back from; any that delivers by default. */
  readonly dealCid?: string
  readonly signal: AbortSignal
  report?(progress: Partial<JobProgress>): void
}

const PAUSE_MS = 1000

/**
 * Has the gateway fetch the bytes of an object from a deal that holds it; resolves with the object once they are here. May take hours.
 * @throws S3Error NoSuchKey, PreconditionFailed when it is replaced meanwhile, InvalidObjectState when no deal delivers it; what Gateway.call throws
 */
export async function bringBack(
  context: Pick<Context, 'gateway' | 'store' | 'log'>,
  bucket: string,
  key: string,
  { stamp, dealCid, signal, report }: BringBackOptions,
): Promise<StoredObject> {
  let meant = stamp
  for (let said: string | undefined; ; ) {
    signal.throwIfAborted()
    const object = await context.store.findToWrite(bucket, key)
    if (!object) throw new S3Error('NoSuchKey', { fields: { Key: key } })
    meant ??= object.stamp
    if (object.stamp !== meant)
      throw new S3Error('PreconditionFailed', { message: 'The object was replaced while it was brought back.' })
    const { size } = object
    report?.({ bytes: { done: object.cold ? 0 : size, total: size } })
    if (!object.cold) return object
    if (said !== undefined)
      throw new S3Error('UpstreamBadResponse', {
        message: 'The object gateway says that the object is here, and that it is not.',
      })
    const answer = await askBack(context, { bucket, key, dealCid, signal })
    if (answer.outcome === 'refused')
      throw new S3Error('InvalidObjectState', { message: `No deal delivered the object. ${answer.message}` })
    // One that takes longer than we wait for an answer goes on: ask again, which joins what is under way.
    if (answer.outcome === 'here') said = answer.message
    else await sleep(PAUSE_MS, undefined, { signal, ref: false })
  }
}

import { setTimeout as sleep } from 'node:timers/promises'
import { type Context, type JobProgress, S3Error, type StoredObject } from 'dealgate'
import { askBack } from './copy-calls.js'

export interface BringBackOptions {
  /** Stamp of the object to restore. Default: whichever object is there. */
  readonly stamp?: string
  /** Deal to retrieve the bytes from. Default: any that delivers. */
  readonly dealCid?: string
  readonly signal: AbortSignal
  report?(progress: Partial<JobProgress>): void
}

const PAUSE_MS = 1000

/**
 * Asks the gateway to retrieve the bytes of an object from a deal that holds it. Resolves with the object once the
 * gateway has a local copy. May take hours.
 * @throws S3Error NoSuchKey, PreconditionFailed when the object is replaced meanwhile, InvalidObjectState when no deal
 * delivers it; what Gateway.call throws
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
      throw new S3Error('PreconditionFailed', { message: 'The object was replaced while it was being restored.' })
    const { size } = object
    report?.({ bytes: { done: object.cold ? 0 : size, total: size } })
    if (!object.cold) return object
    if (said !== undefined)
      throw new S3Error('UpstreamBadResponse', {
        message: 'The object gateway reported the restore as done but holds no local copy.',
      })
    const answer = await askBack(context, { bucket, key, dealCid, signal })
    if (answer.outcome === 'refused')
      throw new S3Error('InvalidObjectState', { message: `No deal delivered the object. ${answer.message}` })
    // A retrieval that takes longer than the timeout of the call continues: the next call joins it.
    if (answer.outcome === 'here') said = answer.message
    else await sleep(PAUSE_MS, undefined, { signal, ref: false })
  }
}

import { HOUR_MS } from '../../../common/time.js'
import type { Network } from '../../network/network.js'
import { pages } from '../../store/database.js'
import type { GatewayCore } from '../core.js'
import { isLocked } from '../store/object-locks.js'
import type { BringBack } from './bring-back.js'
import type { HeldCopy, LockedFile } from './manifest.js'

type LockedContext = Pick<GatewayCore, 'db' | 'network' | 'tasks' | 'log' | 'upkeep'> & {
  readonly bringBack: BringBack
}

/** The last part of a deal: the smaller one of a day and this part of its life. */
const DAY_SECONDS = 86_400
const END = 1 / 20

/** Most versions per query. */
const PAGE = 100

/**
 * Brings the bodies of locked versions back whose deals all end soon, now and every hour until the gateway stops:
 * whichever client has evicted them, and whether another one renews their deals or not, a lock lasts until its end.
 */
export function keepLocked(context: LockedContext): void {
  const failed = (err: unknown) => context.log.error({ err }, 'Could not look for locked versions whose deals end.')
  context.tasks.every(HOUR_MS, (signal) => bringAllBack(context, signal), failed)
}

async function bringAllBack(context: LockedContext, signal: AbortSignal): Promise<void> {
  const { db, network, upkeep } = context
  if (!(await upkeep.take())) return
  const soon = network.epoch() + Math.ceil(DAY_SECONDS / network.epochSeconds)
  const found = pages('generation', '', (after) => db.read.manifest.locked(network.kind, soon, after, PAGE))
  for await (const files of found)
    for (const file of files) {
      signal.throwIfAborted()
      await bringOneBack(context, file)
    }
}

async function bringOneBack(
  { db, network, bringBack, log }: LockedContext,
  { generation, bucketName, bucket: id, key }: LockedFile,
): Promise<void> {
  if (!(await isLocked(db.read, generation))) return
  if ((await db.read.manifest.copiesOf(generation)).some((copy) => !endsSoon(network, copy))) return
  const bucket = await db.read.buckets.find(bucketName)
  if (bucket?.id !== id) return
  const subject = { bucket: bucketName, key: key.toString(), generation }
  try {
    await bringBack.run(bucket, key, undefined, generation)
    log.warn(subject, 'The deals of a locked version end soon: its body is here again.')
  } catch (err) {
    log.error({ err, ...subject }, 'The deals of a locked version end soon, and none delivers it; trying again.')
  }
}

/** True for a deal in the last part of its time, or after it. */
export function endsSoon(
  network: Pick<Network, 'epoch' | 'epochSeconds'>,
  { startEpoch, endEpoch }: Pick<HeldCopy, 'startEpoch' | 'endEpoch'>,
): boolean {
  const last = Math.min(DAY_SECONDS / network.epochSeconds, (endEpoch - startEpoch) * END)
  return network.epoch() >= endEpoch - last
}

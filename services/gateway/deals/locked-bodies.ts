import pMap from 'p-map'
import { HOUR_MS } from '../../../common/time.js'
import type { Network } from '../../network/network.js'
import { pages } from '../../store/database.js'
import type { GatewayCore } from '../core.js'
import { isLocked } from '../store/object-locks.js'
import { type BringBack, MAX_CONCURRENCY } from './bring-back.js'
import type { HeldCopy, LockedFile } from './manifest.js'

type LockedContext = Pick<GatewayCore, 'db' | 'network' | 'tasks' | 'log' | 'upkeep'> & {
  readonly bringBack: BringBack
}

/**
 * The last part of a deal: the smaller one of three days and this part of its life. A backup may have thousands of
 * versions whose deals end together, and a provider may take long.
 */
const LAST_SECONDS = 3 * 86_400
const END = 1 / 20

/** Versions per page. */
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
  if (!(await context.upkeep.take())) return
  await pMap(lockedFiles(context, signal), (file) => bringOneBack(context, file), { concurrency: MAX_CONCURRENCY })
}

async function* lockedFiles({ db, network }: LockedContext, signal: AbortSignal): AsyncGenerator<LockedFile> {
  const soon = network.epoch() + Math.ceil(LAST_SECONDS / network.epochSeconds)
  const first = { ends: 0, generation: '' }
  for await (const files of pages('place', first, (after) => db.read.manifest.locked(network.kind, soon, after, PAGE)))
    for (const file of files) {
      if (signal.aborted) return
      yield file
    }
}

async function bringOneBack(
  { db, network, bringBack, log }: LockedContext,
  { place: { generation }, bucketName, bucket: id, key }: LockedFile,
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
  const last = Math.min(LAST_SECONDS / network.epochSeconds, (endEpoch - startEpoch) * END)
  return network.epoch() >= endEpoch - last
}

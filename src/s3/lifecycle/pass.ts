import pMap from 'p-map'
import { S3Error } from '../../../common/errors/s3-error.js'
import type { Logger } from '../../../common/log.js'
import type { StorageClasses } from '../../api/context.js'
import type { Hooks } from '../../api/hooks.js'
import type { State } from '../../api/state.js'
import type { Store, StoredObject } from '../../api/store.js'
import { ownOrigin } from '../../plugins/hooks.js'

/** One action of a pass. Its operation has the name that access logs of S3 have for it: `S3.EXPIRE.OBJECT`. */
export interface LifecycleAction {
  readonly bucket: string
  readonly key: string
  readonly operation: `S3.${string}`
  readonly versionId?: string | undefined
  /** Size of the object, bytes. */
  readonly size?: number
}

/** Operations of transitions: https://docs.aws.amazon.com/AmazonS3/latest/userguide/lifecycle-and-other-bucket-config.html */
const TRANSITIONS: Readonly<Record<string, LifecycleAction['operation']>> = {
  STANDARD_IA: 'S3.TRANSITION_SIA.OBJECT',
  ONEZONE_IA: 'S3.TRANSITION_ZIA.OBJECT',
  INTELLIGENT_TIERING: 'S3.TRANSITION_INT.OBJECT',
  GLACIER_IR: 'S3.TRANSITION_GIR.OBJECT',
  DEEP_ARCHIVE: 'S3.TRANSITION_GDA.OBJECT',
}

export interface PassDeps {
  /** The store, with the rights of the account that owns the bucket. */
  readonly store: Store
  readonly state: Pick<State, 'uploads' | 'locks'>
  readonly storageClasses: StorageClasses
  readonly hooks: Pick<Hooks, 'objectMoved'>
  readonly log: Logger
  /** Milliseconds since 1970. */
  readonly now: () => number
  /** Resolves true if the pass must end: the server stops, or the rules have changed. */
  readonly ended: () => Promise<boolean>
  /**
   * Asks the gateway; resolves false if this is no longer the bucket that the rules belong to. Called once per listed
   * page, not for each object.
   */
  readonly isMeant: () => Promise<boolean>
  /** Takes what a rule has done, for the access log of the bucket. */
  readonly acted?: ((action: LifecycleAction) => void) | undefined
  /** Asks the gateway whether the bucket is or was versioned. */
  readonly isVersioned: () => Promise<boolean>
}

/** Result of a pass over one bucket. */
export interface Tally {
  /** Number of listed objects, and of listed versions and delete markers where rules are about them. */
  scanned: number
  expired: number
  /** Versions and delete markers removed for good. */
  removed: number
  /** Versions that are due, and stay because they are locked. */
  locked: number
  transitioned: number
  /** Uploads aborted. */
  aborted: number
  /** Objects and versions that were due when they were listed, but no longer when they were processed. */
  spared: number
  /** Objects that are not encrypted, and may be only encrypted where their rule moves them. */
  refused: number
  failed: number
  /** False if the pass ended early. */
  complete: boolean
}

/** Entries of a listed page. */
export const PAGE = 1000

/** Number of objects that are processed concurrently. */
const MAX_CONCURRENCY = 4

/** Number of failures that end a pass. The gateway is then unhealthy, and a later pass processes everything again. */
const MAX_FAILURES = 100

/** Resolves false when the pass must end. */
export async function mayGoOn({ ended }: PassDeps, tally: Tally): Promise<boolean> {
  return tally.failed < MAX_FAILURES && !(await ended())
}

/**
 * Acts on what is due of a page, and counts what fails. Resolves false if this is no longer the bucket that the rules
 * belong to.
 */
export async function actOnDue<T extends { readonly key: string }>(
  deps: PassDeps,
  bucket: string,
  due: readonly T[],
  act: (one: T) => Promise<void>,
  tally: Tally,
): Promise<boolean> {
  if (due.length === 0) return true
  // This shows that the objects listed before belong to the right bucket. Each removal checks that the object is still
  // the listed one.
  if (!(await deps.isMeant())) return false
  await pMap(
    due,
    async (one) => {
      if (!(await mayGoOn(deps, tally))) return
      try {
        await act(one)
      } catch (err) {
        if (err instanceof Spared) {
          tally.spared++
          return
        }
        if (err instanceof S3Error && err.code === 'ObjectNotEncrypted') {
          // All plain objects of such a bucket are refused, in each pass: the others must get their turn.
          if (tally.refused++ === 0) deps.log.warn({ err, bucket }, 'lifecycle rules pass over plain objects')
          return
        }
        tally.failed++
        deps.log.warn({ err, bucket, key: one.key }, 'could not apply a lifecycle rule to an object')
      }
    },
    { concurrency: MAX_CONCURRENCY },
  )
  return true
}

/** The object must not be removed, or no longer. */
export class Spared extends S3Error {
  constructor() {
    super('PreconditionFailed')
  }
}

/** Moves an object, as it is now, into a class. Resolves false if there was nothing to do. */
export async function moveTo(
  { storageClasses, hooks, now, acted }: PassDeps,
  { bucket, key, size, etag, revision, versionId }: StoredObject,
  storageClass: string,
): Promise<boolean> {
  const version = versionId !== undefined && { revision }
  const moved = await storageClasses.get(storageClass)?.transition({ bucket, key, size, etag, ...version })
  if (!moved) return false
  acted?.({ bucket, key, size, versionId, operation: TRANSITIONS[storageClass] ?? 'S3.TRANSITION.OBJECT' })
  const name = 'LifecycleTransition'
  const event = { name, bucket, key, size, etag, time: now(), origin: ownOrigin(), storageClass } as const
  await hooks.objectMoved({ ...event, ...(versionId !== undefined && { versionId }) })
  return true
}

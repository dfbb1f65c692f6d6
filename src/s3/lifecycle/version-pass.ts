import { S3Error } from '../../../common/errors/s3-error.js'
import type { StoredObject } from '../../api/store.js'
import type { RemovalCondition, VersionEntry } from '../../api/versions.js'
import { ownOrigin } from '../../plugins/hooks.js'
import type { LifecycleConfiguration } from './configuration.js'
import { actOnDue, mayGoOn, moveTo, PAGE, type PassDeps, Spared, type Tally } from './pass.js'
import {
  expiresMarker,
  isAboutVersions,
  type NoncurrentVersion,
  newerToExpire,
  noncurrentTransitionOf,
  outermostPrefixes,
} from './rules.js'

type Listed = Exclude<VersionEntry<StoredObject>, { readonly kind: 'prefix' }>

/** What is known of a key from the versions that are listed before, also on earlier pages. */
interface Passed {
  readonly key: string
  /** Number of objects that are not current. */
  readonly newer: number
  /** When the version before was made, RFC 3339. */
  readonly successor: string
}

type Due = Removal | Move

/** A version to remove. */
interface Removal {
  readonly key: string
  readonly entry: Listed
  /** Absent for a delete marker that is the only version of its key. */
  readonly version?: NoncurrentVersion
  readonly only: RemovalCondition
}

/** A version to move to a storage class. */
interface Move {
  readonly key: string
  readonly object: StoredObject
  readonly version: NoncurrentVersion
  readonly storageClass: string
}

/**
 * Applies the rules about noncurrent versions and delete markers to one bucket, in constant memory. Resolves false if
 * it ends early.
 */
export async function passVersions(
  deps: PassDeps,
  bucket: string,
  configuration: LifecycleConfiguration,
  tally: Tally,
): Promise<boolean> {
  const acting = configuration.rules.filter(isAboutVersions)
  if (acting.length === 0 || !(await deps.isVersioned())) return true
  for (const prefix of outermostPrefixes(acting)) {
    let passed: Passed | undefined
    for (let at = { keyMarker: '', versionMarker: '' }; ; ) {
      if (!(await mayGoOn(deps, tally))) return false
      const page = await deps.store.listVersions(bucket, { prefix, delimiter: '', ...at, limit: PAGE })
      const listed = page.entries.filter((entry): entry is Listed => entry.kind !== 'prefix')
      tally.scanned += listed.length
      const due: Due[] = []
      listed.forEach((entry, i) => {
        const one = dueOf(deps, configuration, entry, passed, listed[i + 1])
        if (one) due.push(one)
        passed = passedWith(entry, passed)
      })
      const act = (one: Due) =>
        'only' in one ? remove(deps, bucket, configuration, one, tally) : move(deps, configuration, one, tally)
      if (!(await actOnDue(deps, bucket, due, act, tally))) return false
      if (!page.truncated || page.nextKey === undefined) break
      at = { keyMarker: page.nextKey, versionMarker: page.nextVersion ?? '' }
    }
  }
  return true
}

function dueOf(
  { now }: PassDeps,
  configuration: LifecycleConfiguration,
  entry: Listed,
  passed: Passed | undefined,
  next: Listed | undefined,
): Due | undefined {
  const key = keyOf(entry)
  if (entry.isLatest) {
    // At the end of a page, the gateway knows whether older versions follow.
    const mayBeAlone = entry.kind === 'marker' && (!next || keyOf(next) !== key)
    if (!mayBeAlone || !expiresMarker(configuration, { key, lastModified: Date.parse(entry.lastModified) }, now()))
      return undefined
    return { key, entry, only: { alone: true } }
  }
  const { newer = 0, successor = '' } = passed?.key === key ? passed : {}
  const isObject = entry.kind === 'version'
  const object = isObject ? { size: entry.object.size, tags: entry.object.tags ?? [] } : undefined
  const version = { key, ...(object && { object }), since: Date.parse(isObject ? entry.since : successor), newer }
  const wanted = newerToExpire(configuration, version, now())
  if (wanted !== undefined) return { key, entry, version, only: { noncurrentSince: entry.since, newer: wanted } }
  const storageClass = noncurrentTransitionOf(configuration, version, now())
  if (!isObject || storageClass === undefined || entry.object.archive?.storageClass === storageClass) return undefined
  return { key, object: entry.object, version, storageClass }
}

function passedWith(entry: Listed, passed: Passed | undefined): Passed {
  const key = keyOf(entry)
  const before = passed?.key === key ? passed.newer : 0
  const isCounted = entry.kind === 'version' && !entry.isLatest
  const successor = entry.kind === 'version' ? entry.object.lastModified : entry.lastModified
  return { key, newer: before + (isCounted ? 1 : 0), successor }
}

function keyOf(entry: Listed): string {
  return entry.kind === 'version' ? entry.object.key : entry.key
}

/** Removes the version if, under the lock of its key, it is still the listed one and still due, and is not locked. */
async function remove(
  { store, now, acted }: PassDeps,
  bucket: string,
  configuration: LifecycleConfiguration,
  { key, entry, version, only }: Removal,
  tally: Tally,
): Promise<void> {
  const isStillDue = (current: StoredObject | undefined): boolean => {
    if (entry.kind === 'marker') return true
    if (!version || !('newer' in only) || current?.revision !== entry.object.revision) return false
    const object = { size: current.size, tags: current.tags ?? [] }
    const wanted = newerToExpire(configuration, { ...version, object }, now())
    return wanted !== undefined && wanted <= only.newer
  }
  const cause = { name: 'LifecycleExpiration:Delete', origin: ownOrigin() } as const
  const precondition = (current: StoredObject | undefined) => {
    if (!isStillDue(current)) throw new Spared()
  }
  try {
    await store.remove(bucket, key, cause, precondition, { id: entry.versionId, bypass: false, only })
    tally.removed++
    const size = entry.kind === 'version' ? entry.object.size : 0
    acted?.({ bucket, key, operation: 'S3.EXPIRE.OBJECT', versionId: entry.versionId, size })
  } catch (error) {
    if (!(error instanceof S3Error)) throw error
    if (error.code === 'PreconditionFailed') throw new Spared()
    if (error.code !== 'AccessDenied') throw error
    tally.locked++
  }
}

/** Moves the version if it is still due, and another one is current. */
async function move(
  deps: PassDeps,
  configuration: LifecycleConfiguration,
  { object: { bucket, key, revision }, version, storageClass }: Move,
  tally: Tally,
): Promise<void> {
  const current = await deps.store.find(bucket, key)
  const present = current?.revision === revision ? undefined : await deps.store.findRevision(bucket, key, revision)
  const object = present && { size: present.size, tags: present.tags ?? [] }
  if (!object || noncurrentTransitionOf(configuration, { ...version, object }, deps.now()) !== storageClass)
    throw new Spared()
  if (await moveTo(deps, present, storageClass)) tally.transitioned++
}

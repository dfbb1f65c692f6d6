import type { StoredObject, StoreEntry } from '../../api/store.js'
import type { UploadRecord } from '../../api/uploads.js'
import { ownOrigin } from '../../plugins/hooks.js'
import type { LifecycleConfiguration } from './configuration.js'
import { actOnDue, mayGoOn, moveTo, PAGE, type PassDeps, Spared, type Tally } from './pass.js'
import { abortionOf, type Candidate, candidateOf, expirationOf, outermostPrefixes, transitionOf } from './rules.js'
import { passVersions } from './version-pass.js'

type Listed = Extract<StoreEntry, { kind: 'object' }>

/** Applies the rules of one bucket, in constant memory. Throws S3Error if the bucket cannot be listed. */
export async function passBucket(
  deps: PassDeps,
  bucket: string,
  configuration: LifecycleConfiguration,
): Promise<Tally> {
  const tally: Tally = {
    ...{ scanned: 0, expired: 0, removed: 0, transitioned: 0, aborted: 0 },
    ...{ spared: 0, locked: 0, refused: 0, failed: 0 },
    complete: false,
  }
  await abortUploads(deps, bucket, configuration, tally)
  if (!(await passObjects(deps, bucket, configuration, tally))) return tally
  if (!(await passVersions(deps, bucket, configuration, tally))) return tally
  tally.complete = await mayGoOn(deps, tally)
  return tally
}

/** Applies the rules about current objects. Resolves false if it ends early. */
async function passObjects(
  deps: PassDeps,
  bucket: string,
  configuration: LifecycleConfiguration,
  tally: Tally,
): Promise<boolean> {
  const acting = configuration.rules.filter(
    ({ enabled, expiration, transitions }) =>
      enabled && ((expiration && !('expiredMarkers' in expiration)) || transitions),
  )
  for (const prefix of outermostPrefixes(acting)) {
    for (let after = ''; ; ) {
      if (!(await mayGoOn(deps, tally))) return false
      const page = await deps.store.list(bucket, { prefix, delimiter: '', after, limit: PAGE })
      const objects = page.entries.filter((entry): entry is Listed => entry.kind === 'object')
      tally.scanned += objects.length
      if (!(await actOnPage(deps, bucket, configuration, objects, tally))) return false
      const last = objects.at(-1)
      if (!page.truncated || !last) break
      after = last.key
    }
  }
  return true
}

/** Resolves false if this is no longer the bucket that the rules belong to. */
function actOnPage(
  deps: PassDeps,
  bucket: string,
  configuration: LifecycleConfiguration,
  listed: readonly Listed[],
  tally: Tally,
): Promise<boolean> {
  const actionOf = actionFor(deps, configuration)
  const due = listed.flatMap((entry) => {
    const action = actionOf(candidateOf(entry))
    return action === undefined ? [] : [{ key: entry.key, entry, action }]
  })
  const act = async ({ entry, action }: (typeof due)[number]) => {
    if (action === 'expire') await expire(deps, bucket, entry, (object) => actionOf(object) === 'expire', tally)
    else await transition(deps, bucket, entry, action.storageClass, actionOf, tally)
  }
  return actOnDue(deps, bucket, due, act, tally)
}

type Action = 'expire' | { readonly storageClass: string }

/** Returns a function that selects the action for an object. Expiration takes precedence over transition. */
function actionFor({ now }: PassDeps, configuration: LifecycleConfiguration) {
  return (object: Candidate): Action | undefined => {
    const time = now()
    const expiration = expirationOf(configuration, object)
    if (expiration && expiration.at <= time) return 'expire'
    const storageClass = transitionOf(configuration, object, time)
    return storageClass === undefined ? undefined : { storageClass }
  }
}

/** Moves the object to the class, where it may be already, if it is still the listed one and still due. */
async function transition(
  deps: PassDeps,
  bucket: string,
  listed: Listed,
  storageClass: string,
  actionOf: (object: Candidate) => Action | undefined,
  tally: Tally,
): Promise<void> {
  if (listed.archive?.storageClass === storageClass) return
  const current = await deps.store.find(bucket, listed.key)
  const action = current && isSame(current, listed) ? actionOf(candidateOf(current)) : undefined
  if (!current || typeof action !== 'object' || action.storageClass !== storageClass) throw new Spared()
  if (await moveTo(deps, current, storageClass)) tally.transitioned++
}

/** Removes the object if, under its lock, it is still the listed one and still due. */
async function expire(
  deps: PassDeps,
  bucket: string,
  listed: Listed,
  isDue: (object: Candidate) => boolean,
  tally: Tally,
): Promise<void> {
  const cause = { name: 'LifecycleExpiration:Delete', origin: ownOrigin() } as const
  const { key, size } = listed
  const { deleteMarker, versionId } = await deps.store.remove(bucket, key, cause, (current) => {
    if (!current || !isSame(current, listed) || !isDue(candidateOf(current))) throw new Spared()
  })
  tally.expired++
  const operation = deleteMarker ? 'S3.CREATE.DELETEMARKER' : 'S3.EXPIRE.OBJECT'
  deps.acted?.({ bucket, key, operation, versionId, ...(!deleteMarker && { size }) })
}

/** Compares whole seconds, because some gateways return more precise times in listings than elsewhere. */
function isSame(current: StoredObject, listed: Listed): boolean {
  const seconds = (time: string) => Math.floor(Date.parse(time) / 1000)
  return current.etag === listed.etag && seconds(current.lastModified) === seconds(listed.lastModified)
}

/**
 * Aborts the multipart uploads that have expired by the bucket's rules. Parts that another proxy staged are removed by
 * that proxy's sweep.
 */
async function abortUploads(
  deps: PassDeps,
  bucket: string,
  { rules }: LifecycleConfiguration,
  tally: Tally,
): Promise<void> {
  const aborting = { rules: rules.filter(({ enabled, abortDays }) => enabled && abortDays !== undefined) }
  if (aborting.rules.length === 0) return
  const due = (upload: UploadRecord) => (abortionOf(aborting, upload)?.at ?? Number.POSITIVE_INFINITY) <= deps.now()
  const given = (await deps.state.uploads.list(bucket)).filter(due)
  if (given.length === 0 || !(await deps.isMeant())) return
  for (const upload of given) {
    if (await deps.ended()) return
    try {
      if (!(await abort(deps, upload.uploadId))) continue
      tally.aborted++
      deps.acted?.({ bucket, key: upload.key, operation: 'S3.DELETE.UPLOAD' })
    } catch (err) {
      tally.failed++
      deps.log.warn({ err, bucket, uploadId: upload.uploadId }, 'could not abort an upload by a lifecycle rule')
    }
  }
}

/** Aborts an upload under the lock of CompleteMultipartUpload, so that an upload that is being completed is kept. */
function abort({ state }: PassDeps, uploadId: string): Promise<boolean> {
  return state.locks.withName(`complete/${uploadId}`, async () => {
    if (!(await state.uploads.get(uploadId))) return false
    await state.uploads.abort(uploadId)
    return true
  })
}

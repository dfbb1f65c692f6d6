import pMap from 'p-map'
import type { Tag } from '../../api/access.js'
import type { StorageClasses } from '../../api/context.js'
import type { Hooks } from '../../api/hooks.js'
import type { State, UploadRecord } from '../../api/state.js'
import type { Store, StoredObject, StoreEntry } from '../../api/store.js'
import { compareUtf8 } from '../../common/byte-order.js'
import { S3Error } from '../../common/errors/s3-error.js'
import type { Logger } from '../../common/log.js'
import { ownOrigin } from '../../plugins/hooks.js'
import type { LifecycleConfiguration, LifecycleRule } from './configuration.js'
import { asksForTags, type Candidate, dueAfter, dueAt, expirationOf, matches } from './rules.js'

export interface PassDeps {
  /** The store, with the rights of the account that owns the bucket. */
  readonly store: Store
  readonly state: Pick<State, 'objects' | 'uploads' | 'locks'>
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
}

/** Result of a pass over one bucket. */
interface Tally {
  /** Number of listed objects. */
  scanned: number
  expired: number
  transitioned: number
  /** Uploads aborted. */
  aborted: number
  /** Objects that were due when they were listed, but no longer when they were processed. */
  spared: number
  /** Objects that are not encrypted, and may be only encrypted where their rule moves them. */
  refused: number
  failed: number
  /** False if the pass ended early. */
  complete: boolean
}

const PAGE = 1000

/** Number of objects that are processed concurrently. */
const MAX_CONCURRENCY = 4

/** Number of failures that end a pass. The gateway is then unhealthy, and a later pass processes everything again. */
const MAX_FAILURES = 100

type Listed = Extract<StoreEntry, { kind: 'object' }>

/** Applies the rules of one bucket, in constant memory. Throws S3Error if the bucket cannot be listed. */
export async function passBucket(
  deps: PassDeps,
  bucket: string,
  configuration: LifecycleConfiguration,
): Promise<Tally> {
  const tally: Tally = {
    ...{ scanned: 0, expired: 0, transitioned: 0, aborted: 0, spared: 0, refused: 0, failed: 0 },
    complete: false,
  }
  await abortUploads(deps, bucket, configuration, tally)
  const acting = configuration.rules.filter((rule) => rule.enabled && (rule.expiration || rule.transitions))
  for (const prefix of outermostPrefixes(acting)) {
    for (let after = ''; ; ) {
      if (tally.failed >= MAX_FAILURES || (await deps.ended())) return tally
      const page = await deps.store.list(bucket, { prefix, delimiter: '', after, limit: PAGE })
      const objects = page.entries.filter((entry): entry is Listed => entry.kind === 'object')
      tally.scanned += objects.length
      if (!(await actOnPage(deps, bucket, configuration, objects, tally))) return tally
      const last = objects.at(-1)
      if (!page.truncated || !last) break
      after = last.key
    }
  }
  tally.complete = tally.failed < MAX_FAILURES && !(await deps.ended())
  return tally
}

/** Resolves false if this is no longer the bucket that the rules belong to. */
async function actOnPage(
  deps: PassDeps,
  bucket: string,
  configuration: LifecycleConfiguration,
  listed: readonly Listed[],
  tally: Tally,
): Promise<boolean> {
  const act = actionFor(deps, configuration)
  const possible = listed.filter((entry) => act({ ...candidate(entry), tags: undefined }) !== undefined)
  const tags = asksForTags(configuration) ? await tagsOf(deps, bucket, possible) : possible.map(() => undefined)
  const due = possible.flatMap((entry, i) => {
    const action = act({ ...candidate(entry), tags: tags[i] })
    return action === undefined ? [] : [{ entry, action }]
  })
  if (due.length === 0) return true
  // This shows that the objects listed before belong to the right bucket. Each removal checks that the object is still
  // the listed one.
  if (!(await deps.isMeant())) return false
  await pMap(
    due,
    async ({ entry, action }) => {
      if (tally.failed >= MAX_FAILURES || (await deps.ended())) return
      try {
        if (action === 'expire') await expire(deps, bucket, entry, (object) => act(object) === 'expire', tally)
        else if (await transition(deps, bucket, entry, action.storageClass)) tally.transitioned++
      } catch (err) {
        if (err instanceof S3Error && err.code === 'ObjectNotEncrypted') {
          // All plain objects of such a bucket are refused, in each pass: the others must get their turn.
          if (tally.refused++ === 0) deps.log.warn({ err, bucket }, 'lifecycle rules pass over plain objects')
          return
        }
        tally.failed++
        deps.log.warn({ err, bucket, key: entry.key }, 'could not apply a lifecycle rule to an object')
      }
    },
    { concurrency: MAX_CONCURRENCY },
  )
  return true
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

function candidate({
  key,
  size,
  lastModified,
}: Pick<Listed, 'key' | 'size' | 'lastModified'>): Omit<Candidate, 'tags'> {
  return { key, size, lastModified: Date.parse(lastModified) }
}

/**
 * Reads tags from the records only. Tags of another version than the listed one are ignored; each removal checks the
 * object again.
 */
async function tagsOf(deps: PassDeps, bucket: string, listed: readonly Listed[]): Promise<(readonly Tag[])[]> {
  const records = await deps.state.objects.getMany(
    bucket,
    listed.map(({ key }) => key),
  )
  return listed.map(({ size, storedSize = size, etag }, i) => {
    const record = records[i]
    return (record?.size === storedSize && record.etag === etag && record.tags) || []
  })
}

/** Resolves true if the object was moved to the class, false if it was there already. */
async function transition(
  { storageClasses, hooks, now }: PassDeps,
  bucket: string,
  { key, size, etag, archive }: Listed,
  storageClass: string,
): Promise<boolean> {
  const offered = archive?.storageClass === storageClass ? undefined : storageClasses.get(storageClass)
  if (!(await offered?.transition({ bucket, key, size, etag }))) return false
  await hooks.objectMoved({
    name: 'LifecycleTransition',
    bucket,
    key,
    size,
    etag,
    time: now(),
    origin: ownOrigin(),
    storageClass,
  })
  return true
}

/** Removes the object if, under its lock, it is still the listed one and still due. */
async function expire(
  deps: PassDeps,
  bucket: string,
  listed: Listed,
  isDue: (object: Candidate) => boolean,
  tally: Tally,
): Promise<void> {
  const origin = ownOrigin()
  try {
    await deps.store.remove(bucket, listed.key, { name: 'LifecycleExpiration:Delete', origin }, (current) => {
      if (!current || !isSame(current, listed) || !isDue({ ...candidate(current), tags: current.tags ?? [] }))
        throw new Spared()
    })
    tally.expired++
  } catch (error) {
    if (!(error instanceof Spared)) throw error
    tally.spared++
  }
}

/** Compares whole seconds, because some gateways return more precise times in listings than elsewhere. */
function isSame(current: StoredObject, listed: Listed): boolean {
  const seconds = (time: string) => Math.floor(Date.parse(time) / 1000)
  return current.etag === listed.etag && seconds(current.lastModified) === seconds(listed.lastModified)
}

/** The object must not be removed, or no longer. */
class Spared extends S3Error {
  constructor() {
    super('PreconditionFailed')
  }
}

/**
 * Returns the prefixes that cover all objects of these rules. None is below another, so that no object is listed twice.
 */
export function outermostPrefixes(rules: readonly Pick<LifecycleRule, 'filter'>[]): readonly string[] {
  const outermost: string[] = []
  for (const prefix of rules.map(({ filter }) => filter.prefix ?? '').sort(compareUtf8)) {
    const last = outermost.at(-1)
    if (last === undefined || !prefix.startsWith(last)) outermost.push(prefix)
  }
  return outermost
}

const SMALL = 128 * 1024

/**
 * Returns the storage class of an object at `now` (ms since 1970): that of the latest transition. Undefined for none.
 * Objects under 128 KiB stay unless the rule has a size condition:
 * https://docs.aws.amazon.com/AmazonS3/latest/userguide/lifecycle-transition-general-considerations.html
 */
export function transitionOf(
  configuration: LifecycleConfiguration,
  object: Candidate,
  now: number,
): string | undefined {
  let latest: { readonly at: number; readonly storageClass: string } | undefined
  for (const rule of configuration.rules) {
    if (!rule.enabled || !matches(rule.filter, object)) continue
    for (const transition of rule.transitions ?? []) {
      if (object.size < smallest(configuration, rule, transition.storageClass)) continue
      const at = dueAt(transition, object.lastModified)
      if (at <= now && (!latest || at > latest.at)) latest = { at, storageClass: transition.storageClass }
    }
  }
  return latest?.storageClass
}

function smallest(
  { minimumTransitionSize }: LifecycleConfiguration,
  rule: LifecycleRule,
  storageClass: string,
): number {
  if (rule.filter.greaterThan !== undefined || rule.filter.lessThan !== undefined) return 0
  const archive = storageClass === 'GLACIER' || storageClass === 'DEEP_ARCHIVE'
  return archive && minimumTransitionSize === 'varies_by_storage_class' ? 0 : SMALL
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
  const aborting = rules.filter(({ enabled, abortDays }) => enabled && abortDays !== undefined)
  if (aborting.length === 0) return
  const due = ({ key, initiated }: UploadRecord) =>
    aborting.some(
      ({ filter, abortDays = Number.POSITIVE_INFINITY }) =>
        key.startsWith(filter.prefix ?? '') && dueAfter(initiated, abortDays) <= deps.now(),
    )
  const given = (await deps.state.uploads.list(bucket)).filter(due)
  if (given.length === 0 || !(await deps.isMeant())) return
  for (const upload of given) {
    if (await deps.ended()) return
    try {
      if (await abort(deps, upload.uploadId)) tally.aborted++
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

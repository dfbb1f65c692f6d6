import { S3Error } from '../errors/s3-error.js'
import type { Logger } from '../log.js'
import { inOrder } from '../operations/common/in-order.js'
import type { Hooks } from '../registry/hooks.js'
import { ownOrigin } from '../registry/own-origin.js'
import type { StorageClasses } from '../registry/storage-class.js'
import type { State, Tag } from '../state/state.js'
import type { Store, StoredObject, StoreEntry } from '../store/store.js'
import { abortUploads } from './abort-uploads.js'
import type { LifecycleConfiguration } from './configuration.js'
import { outermostPrefixes } from './prefixes.js'
import { asksForTags, type Candidate, expirationOf } from './rules.js'
import { transitionOf } from './transitions.js'

export interface PassParts {
  /** As the server's own account sees it. */
  readonly store: Store
  readonly state: Pick<State, 'objects' | 'uploads' | 'locks'>
  readonly storageClasses: StorageClasses
  readonly hooks: Pick<Hooks, 'objectMoved'>
  readonly log: Logger
  /** Milliseconds since 1970. */
  readonly now: () => number
  /** True when the pass must not go on: the server stops, or the rules are no longer those. */
  readonly ended: () => Promise<boolean>
  /** Asks the gateway: false when this is no longer the bucket that the rules were made for. Asked once for what was listed before, not for each object. */
  readonly isMeant: () => Promise<boolean>
}

/** What a pass over one bucket did. */
export interface Tally {
  /** Objects looked at. */
  scanned: number
  expired: number
  transitioned: number
  /** Uploads aborted. */
  aborted: number
  /** Objects that were due by the listing and no longer when their turn came. */
  spared: number
  failed: number
  /** False when it ended before it had seen everything. */
  complete: boolean
}

const PAGE = 1000
/** Objects worked on at once. */
const CONCURRENCY = 4
/** So many failures end a pass: the gateway is not well, and a later pass goes over everything again. */
const MAX_FAILURES = 100

type Listed = Extract<StoreEntry, { kind: 'object' }>

/** Does in one bucket what its rules ask for. Memory does not grow with the bucket. Throws S3Error when it cannot be listed. */
export async function passBucket(
  parts: PassParts,
  bucket: string,
  configuration: LifecycleConfiguration,
): Promise<Tally> {
  const tally: Tally = { scanned: 0, expired: 0, transitioned: 0, aborted: 0, spared: 0, failed: 0, complete: false }
  await abortUploads(parts, bucket, configuration, tally)
  const acting = configuration.rules.filter((rule) => rule.enabled && (rule.expiration || rule.transitions))
  for (const prefix of outermostPrefixes(acting)) {
    for (let after = ''; ; ) {
      if (tally.failed >= MAX_FAILURES || (await parts.ended())) return tally
      const page = await parts.store.list(bucket, { prefix, delimiter: '', after, limit: PAGE })
      const objects = page.entries.filter((entry): entry is Listed => entry.kind === 'object')
      tally.scanned += objects.length
      if (!(await actOnPage(parts, bucket, configuration, objects, tally))) return tally
      const last = objects.at(-1)
      if (!page.truncated || !last) break
      after = last.key
    }
  }
  tally.complete = tally.failed < MAX_FAILURES && !(await parts.ended())
  return tally
}

/** Resolves false when this is not the bucket that the rules were made for. */
async function actOnPage(
  parts: PassParts,
  bucket: string,
  configuration: LifecycleConfiguration,
  listed: readonly Listed[],
  tally: Tally,
): Promise<boolean> {
  const act = actionFor(parts, configuration)
  const possible = listed.filter((entry) => act({ ...candidate(entry), tags: undefined }) !== undefined)
  const tags = asksForTags(configuration) ? await tagsOf(parts, bucket, possible) : possible.map(() => undefined)
  const due = possible.flatMap((entry, i) => {
    const action = act({ ...candidate(entry), tags: tags[i] })
    return action === undefined ? [] : [{ entry, action }]
  })
  if (due.length === 0) return true
  // What was listed before this is of that very bucket, and each removal makes sure that it is still the object that was listed.
  if (!(await parts.isMeant())) return false
  await inOrder(due, CONCURRENCY, async ({ entry, action }) => {
    if (tally.failed >= MAX_FAILURES || (await parts.ended())) return
    try {
      if (action === 'expire') await expire(parts, bucket, entry, (object) => act(object) === 'expire', tally)
      else if (await transition(parts, bucket, entry, action.storageClass)) tally.transitioned++
    } catch (err) {
      tally.failed++
      parts.log.warn({ err, bucket, key: entry.key }, 'a lifecycle rule could not be carried out on an object')
    }
  })
  return true
}

type Action = 'expire' | { readonly storageClass: string }

/** Tells what is to be done with an object now. Expiration goes before transition. */
function actionFor({ now }: PassParts, configuration: LifecycleConfiguration) {
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

/** Tags from the records alone: those of another version than the listed one do not count, and what is removed is looked at once more. */
async function tagsOf(parts: PassParts, bucket: string, listed: readonly Listed[]): Promise<(readonly Tag[])[]> {
  const records = await parts.state.objects.getMany(
    bucket,
    listed.map(({ key }) => key),
  )
  return listed.map(({ size, etag }, i) => {
    const record = records[i]
    return (record?.size === size && record.etag === etag && record.tags) || []
  })
}

/** Resolves true when the object has come into the class now, false when it was there before. */
async function transition(
  { storageClasses, hooks, now }: PassParts,
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

/** Removes the object if it is still the listed one and still due, both decided under its lock. */
async function expire(
  parts: PassParts,
  bucket: string,
  listed: Listed,
  isDue: (object: Candidate) => boolean,
  tally: Tally,
): Promise<void> {
  const origin = ownOrigin()
  try {
    await parts.store.remove(bucket, listed.key, { name: 'LifecycleExpiration:Delete', origin }, (current) => {
      if (!current || !isSame(current, listed) || !isDue({ ...candidate(current), tags: current.tags ?? [] }))
        throw new Spared()
    })
    tally.expired++
  } catch (error) {
    if (!(error instanceof Spared)) throw error
    tally.spared++
  }
}

/** Whole seconds: some gateways tell times more precisely in listings than elsewhere. */
function isSame(current: StoredObject, listed: Listed): boolean {
  const seconds = (time: string) => Math.floor(Date.parse(time) / 1000)
  return current.etag === listed.etag && seconds(current.lastModified) === seconds(listed.lastModified)
}

/** The object is not, or no longer, one to remove. */
class Spared extends S3Error {
  constructor() {
    super('PreconditionFailed')
  }
}

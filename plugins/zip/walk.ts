import { setImmediate } from 'node:timers/promises'
import { type Context, S3Error, type StoredObject } from 'dealgate/plugin'
import pLimit from 'p-limit'
import pMap from 'p-map'
import { Paths } from './room.js'
import type { Selection } from './selection.js'

/** Most objects of an archive: its directory is in memory until it ends. */
const MAX_OBJECTS = 100_000

/** Objects of a page of a listing. */
const PAGE = 1000
/** Decisions, and looks at objects, at the same time. */
const CONCURRENCY = 8
/** Pages that are looked at at the same time, for all requests. */
const looking = pLimit(8)
/** Objects of a page between which other requests have their turn: a decision is quick, and thousands are not. */
const AT_ONCE = 50
/** Objects that a refusal names. */
const MAX_TOLD = 5

/** An object of the selection. `listed` is there for one that a listing has shown. */
export interface Place {
  readonly key: string
  readonly versionId?: string
  readonly listed?: StoredObject
}

/**
 * Yields the objects of a selection in pages, always in the same order. Throws AccessDenied, NoSuchBucket, and
 * InvalidRequest for too many: a bucket may get more while its archive is sent.
 */
export async function* pagesOf(
  context: Pick<Context, 'authorizer' | 'store'>,
  bucket: string,
  selection: Selection,
  paths = new Paths(),
): AsyncGenerator<readonly Place[]> {
  let count = 0
  for await (const page of allPages(context, bucket, selection)) {
    count += page.length
    if (count > MAX_OBJECTS)
      throw new S3Error('InvalidRequest', {
        message: `An archive has at most ${MAX_OBJECTS} objects: select fewer, such as one folder.`,
      })
    for (const { key } of page) paths.add(key)
    yield page
  }
}

async function* allPages(
  { authorizer, store }: Pick<Context, 'authorizer' | 'store'>,
  bucket: string,
  { objects, prefixes }: Selection,
): AsyncGenerator<readonly Place[]> {
  if (objects.length > 0) yield objects
  for (const prefix of prefixes) {
    await authorizer.decide({ action: 's3:ListBucket', bucket, prefix, more: { listed: prefix } })
    let after = ''
    for (let truncated = true; truncated; ) {
      const page = await store.listObjects(bucket, { prefix, after, limit: PAGE })
      yield page.objects.map((listed) => ({ key: listed.key, listed }))
      after = page.objects.at(-1)?.key ?? after
      truncated = page.truncated && page.objects.length > 0
    }
  }
}

interface Looked {
  readonly objects: number
  readonly bytes: number
  /** Characters of its paths, as `Paths` counts them. */
  readonly paths: number
}

/**
 * Looks at all objects before the first byte is sent, and counts them. Refuses what would end an archive in its middle:
 * AccessDenied for a key that the caller may not read, InvalidObjectState for objects whose bytes are in an archive,
 * InvalidRequest for those with a key of the client and for too many, NoSuchKey for none at all.
 */
export async function check(
  context: Context,
  bucket: string,
  selection: Selection,
  signal: AbortSignal,
): Promise<Looked> {
  const sum = { objects: 0, bytes: 0 }
  const paths = new Paths()
  const cold = new Refused('InvalidObjectState', 'the bytes of these objects are in an archive: restore them first')
  const locked = new Refused(
    'InvalidRequest',
    'these objects are encrypted with keys of clients, without which nobody reads them',
  )
  for await (const page of pagesOf(context, bucket, selection, paths)) {
    sum.objects += page.length
    const found = await looking(() => lookAt(context, bucket, page, signal))
    for (const { key, size, cold: isCold, encrypted } of found) {
      sum.bytes += size
      if (isCold) cold.add(key)
      if (encrypted?.algorithm === 'SSE-C') locked.add(key)
    }
  }
  cold.throwIfAny()
  locked.throwIfAny()
  if (sum.objects === 0) throw new S3Error('NoSuchKey', { message: 'The selection has no object.' })
  mustBeWanted(signal)
  return { ...sum, paths: paths.length }
}

/** An answer that nobody gets is no failure of the server. */
function mustBeWanted({ aborted }: AbortSignal): void {
  if (aborted) throw new S3Error('RequestTimeout', { message: 'The client has left.' })
}

async function lookAt(context: Context, bucket: string, page: readonly Place[], signal: AbortSignal) {
  const found: StoredObject[] = []
  for (let at = 0; at < page.length; at += AT_ONCE) {
    mustBeWanted(signal)
    const some = page.slice(at, at + AT_ONCE)
    found.push(...(await pMap(some, (place) => look(context, bucket, place), { concurrency: CONCURRENCY })))
    await setImmediate()
  }
  return found
}

async function look({ authorizer, checks, store }: Context, bucket: string, place: Place): Promise<StoredObject> {
  const { key, versionId, listed } = place
  try {
    checks.requireKey(bucket, key, 'read')
    await authorizer.decide(
      versionId === undefined
        ? { action: 's3:GetObject', bucket, key }
        : { action: 's3:GetObjectVersion', bucket, key, more: { versionId } },
    )
    return listed ?? (await store.head(bucket, key, versionId === undefined ? undefined : { id: versionId }))
  } catch (error) {
    // The request names many: the answer says which.
    if (!(error instanceof S3Error) || error.status >= 500) throw error
    throw new S3Error(error.code, {
      ...{ status: error.status, fields: { ...error.fields, Key: key }, cause: error },
      message: `${key}: ${error.message}`,
    })
  }
}

/** Objects that cannot be in an archive, of which a refusal names the first. */
class Refused {
  readonly #keys: string[] = []
  #count = 0

  constructor(
    readonly code: 'InvalidObjectState' | 'InvalidRequest',
    readonly why: string,
  ) {}

  add(key: string): void {
    this.#count++
    if (this.#keys.length < MAX_TOLD) this.#keys.push(key)
  }

  throwIfAny(): void {
    if (this.#count === 0) return
    const others = this.#count - this.#keys.length
    const more = others > 0 ? `, and ${others} more` : ''
    throw new S3Error(this.code, {
      message: `The archive was not made: ${this.why}, or leave them out. ${this.#keys.join(', ')}${more}.`,
    })
  }
}

import { rfc3339 } from '../../clock.js'
import { Tally } from './bucket-numbers.js'
import type { BucketRow, LockedBucket } from './buckets.js'
import { type ChangeParts, type ChangeTables, keyState, letGo, mustStillBe, type Stored } from './change-parts.js'
import type { WriteOrder } from './fences.js'
import type { KeyState } from './key-states.js'
import type { FreedBody } from './object-row.js'
import { type RemovalAnswer, removeCurrent, removeVersion, type VersionRemoval } from './version-changes.js'

/** The keys to remove, found inside the transaction. */
type Keys = (tables: ChangeTables) => Promise<readonly Buffer[]>

/** A removal of keys, or of one version of a key. */
export interface Removal {
  readonly keys: Keys
  /** Absent for a client without fences. */
  readonly order?: WriteOrder | undefined
  /** Absent: the current object of each key. */
  readonly version?: VersionRemoval | undefined
}

export interface RemovedKeysResult {
  /** Number of keys that had an object. */
  readonly removed: number
  /** The answer for the last key. */
  readonly answer: RemovalAnswer
}

/** What a transaction has removed so far. */
interface Removing {
  readonly gone: FreedBody[]
  readonly tally: Tally
  removed: number
  answer: RemovalAnswer
}

/**
 * The transaction of a removal: for each key decide, remove, record, and then count what is gone. Its caller commits it
 * and discards the bodies of `stored`. Throws GatewayError NoSuchBucket, Overtaken, OtherGeneration, WriteIdReused or
 * ObjectLocked.
 * @param alone the change is alone in the bucket
 */
export async function removeKeys(
  parts: ChangeParts,
  tables: ChangeTables,
  bucket: BucketRow,
  removal: Removal,
  alone: boolean,
): Promise<RemovedKeysResult & { readonly stored: Stored }> {
  const locked = tables.keyStates.find === undefined ? await mustStillBe(tables, bucket, alone) : undefined
  const soFar: Removing = { gone: [], tally: new Tally(), removed: 0, answer: {} }
  let held = locked
  for (const key of await removal.keys(tables)) {
    const state = await stateOf(tables, bucket, key, locked)
    held = state.held
    await removeKey(parts, tables, state, key, removal, soFar)
  }
  held ??= await mustStillBe(tables, bucket, alone)
  const { gone, tally, removed, answer } = soFar
  if (!tally.isEmpty) await tables.buckets.count(bucket.id, tally)
  return { removed, answer, stored: await letGo(parts, tables, held, gone) }
}

/** @param locked the bucket, if it has been locked for all keys */
async function stateOf(
  tables: ChangeTables,
  bucket: BucketRow,
  key: Buffer,
  locked: LockedBucket | undefined,
): Promise<Pick<KeyState, 'held' | 'present' | 'removed'>> {
  if (locked !== undefined) return { held: locked, present: await tables.objects.lastWrite(bucket.id, key) }
  return (await keyState(tables, bucket, key)) as KeyState
}

/** Removes one key unless a later write, or this removal, has been there before. */
async function removeKey(
  parts: ChangeParts,
  tables: ChangeTables,
  { held, present, removed }: Pick<KeyState, 'held' | 'present' | 'removed'>,
  key: Buffer,
  { order, version }: Removal,
  soFar: Removing,
): Promise<void> {
  const { admission, clock } = parts
  const { write, answer } = await admission.admit(tables, held, key, order, 'removal', present, removed)
  if (write === 'repeated') {
    soFar.answer = answer ?? {}
    return
  }
  const change =
    version === undefined
      ? await removeCurrent(tables, clock, held, key, write, present, soFar.tally)
      : await removeVersion(tables, held, key, version, soFar.tally)
  soFar.answer = change.answer
  // A removal of a missing object also refuses uploads that were sent before it.
  const isWrite = change.freed.length > 0 || change.answer.deleteMarker === true || order !== undefined
  if (isWrite) await admission.remember(tables, held, key, write, change.answer)
  soFar.gone.push(...change.freed)
  if (!change.hadObject) return
  soFar.removed++
  await removeEmptiedFolders(parts, tables, held, key, soFar)
  await parts.rules.entryChanged(tables, held.id, key, rfc3339(clock.now()))
}

/** Removes the folder objects above a removed key that are empty now, where the key rules say so. */
async function removeEmptiedFolders(
  { rules, clock }: ChangeParts,
  tables: ChangeTables,
  held: LockedBucket,
  key: Buffer,
  soFar: Removing,
): Promise<void> {
  for await (const folder of rules.emptiedFolders(tables, held.id, key)) {
    const present = await tables.objects.lastWrite(held.id, folder)
    if (present === undefined) continue
    const none = { fence: 0, writeId: null }
    soFar.gone.push(...(await removeCurrent(tables, clock, held, folder, none, present, soFar.tally)).freed)
  }
}

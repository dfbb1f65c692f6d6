// What clients were told of the versions of one key, and what may be there after it.

/** Of a request, by the clock of the client. */
export interface Span {
  readonly from: number
  readonly until: number
  /** `unknown`: it may have taken effect or not. What was refused has no effect and is not here. */
  readonly outcome: 'done' | 'unknown'
}

/** A request that makes a version, at most one though it is repeated. */
export interface Write extends Span {
  /** In the metadata of the version, which no other one has. */
  readonly name: string
  /** Undefined: a DELETE, which makes a delete marker. */
  readonly body: string | undefined
  /** As it was answered. */
  readonly versionId?: string | undefined
}

export interface Removal extends Span {
  readonly versionId: string
  readonly bypass: boolean
}

export interface Locking extends Span {
  readonly versionId: string
  readonly lock: 'hold' | 'GOVERNANCE' | 'COMPLIANCE'
  readonly on: boolean
}

export interface KeyHistory {
  readonly writes: Write[]
  readonly removals: Removal[]
  readonly lockings: Locking[]
  /** Versioning of the bucket is suspended now and then: there may be a version `null`. */
  readonly suspends: boolean
}

/** An entry of a listing, with what GET answers. */
export interface Found {
  readonly versionId: string
  readonly isLatest: boolean
  /** '' for a delete marker. */
  readonly name: string
  /** Undefined: a delete marker. */
  readonly body: string | undefined
}

const NULL = 'null'
const isDone = ({ outcome }: Span) => outcome === 'done'

/** All that contradicts the history. The last write is acknowledged and began after all else had ended. */
export function whatIsWrong(history: KeyHistory, found: readonly Found[]): string[] {
  return [...wrongEntries(history, found), ...wrongVersions(history, found), ...wrongOrder(history, found)].concat(
    history.suspends ? wrongNull(history, found) : [],
  )
}

/** The write that made the entry, where it can be told. */
function originOf({ writes }: KeyHistory, { versionId, name, body }: Found): Write | undefined {
  if (body !== undefined) return writes.find((write) => write.body !== undefined && write.name === name)
  return versionId === NULL
    ? undefined
    : writes.find((write) => write.body === undefined && write.versionId === versionId)
}

function wrongEntries(history: KeyHistory, found: readonly Found[]): string[] {
  const wrong: string[] = []
  const twice = (texts: readonly string[]) => texts.filter((text, place) => texts.indexOf(text) !== place)
  for (const id of twice(found.map(({ versionId }) => versionId))) wrong.push(`${id} is listed twice`)
  const objects = found.filter(({ body }) => body !== undefined)
  for (const name of twice(objects.map(({ name }) => name))) wrong.push(`${name} has made two versions`)
  for (const [place, { isLatest, versionId }] of found.entries())
    if (isLatest !== (place === 0)) wrong.push(`${versionId} is the latest: ${isLatest}`)
  for (const entry of objects) {
    const { versionId, name, body } = entry
    const origin = originOf(history, entry)
    if (origin === undefined) wrong.push(`${versionId}: no client has written ${name}`)
    else if (origin.body !== body) wrong.push(`${versionId} has not the bytes of ${name}`)
    else if ((origin.versionId ?? versionId) !== versionId) wrong.push(`${name} is not ${origin.versionId}`)
    if (versionId === NULL && !history.suspends) wrong.push(`${name} has no version id`)
  }
  const markers = found.filter((entry) => entry.body === undefined && entry.versionId !== NULL)
  const strange = markers.filter((entry) => originOf(history, entry) === undefined).length
  const unknown = history.writes.filter(({ body, versionId }) => body === undefined && versionId === undefined).length
  if (strange > unknown) wrong.push(`${strange} delete markers of ${unknown} unknown removals`)
  return wrong
}

/** Nothing acknowledged is lost, nothing deleted is there, and nothing locked is deleted. */
function wrongVersions(history: KeyHistory, found: readonly Found[]): string[] {
  const { writes, removals, suspends } = history
  const wrong: string[] = []
  for (const { name, body, versionId } of writes.filter(isDone)) {
    if (versionId === NULL) continue
    if (versionId === undefined) {
      // A completion that is repeated after its effect is answered without an id.
      if (!suspends && body !== undefined && !found.some((entry) => entry.name === name)) wrong.push(`${name} is lost`)
      continue
    }
    const isThere = found.some((entry) => entry.versionId === versionId)
    const removed = removals.filter((removal) => removal.versionId === versionId)
    const isLocked = history.lockings.some((locking) => locking.versionId === versionId && lasts(locking, history))
    if (!isThere && isLocked) wrong.push(`${name} is gone under its lock`)
    else if (!isThere && removed.length === 0) wrong.push(`${name} is lost`)
    if (isThere && removed.some(isDone)) wrong.push(`${name} was deleted and is there`)
    if (isThere && isLocked && removed.some(isDone)) wrong.push(`the deletion of ${name} was answered under its lock`)
  }
  return wrong
}

/** The lock is on, and nothing can have ended or passed it. */
function lasts(locking: Locking, { lockings, removals }: KeyHistory): boolean {
  const { versionId, lock, on } = locking
  if (!on || !isDone(locking)) return false
  const ends = lockings.some(
    (other) => other.versionId === versionId && other.lock === lock && !other.on && other.until > locking.from,
  )
  const passed = removals.some((removal) => removal.versionId === versionId && removal.bypass)
  return !ends && !(lock === 'GOVERNANCE' && passed)
}

/** A version is newer than each that was there before its write began. */
function wrongOrder(history: KeyHistory, found: readonly Found[]): string[] {
  const known = found.map((entry) => originOf(history, entry)).filter((origin) => origin !== undefined)
  return known.flatMap((newer, place) =>
    known
      .slice(place + 1)
      // One whose outcome is unknown takes effect before every acknowledged write that began later, or never.
      .filter((older) => newer.until < older.from && (isDone(newer) || isDone(older)))
      .map((older) => `${newer.name} is listed as newer than ${older.name}`),
  )
}

/** The version `null` has one place, which its writes and removals share. */
function wrongNull({ writes, removals }: KeyHistory, found: readonly Found[]): string[] {
  const entry = found.find(({ versionId }) => versionId === NULL)
  const ofNull = removals.filter(({ versionId }) => versionId === NULL)
  const made = writes.filter(({ versionId }) => versionId === NULL)
  if (entry === undefined) {
    const lost = made.filter((write) => !ofNull.some(({ until }) => until > write.from))
    return lost.map(({ name }) => `${name} is lost, the version null`)
  }
  const acknowledged = [...made, ...ofNull].filter(isDone)
  const standing = writes.filter(
    (write) =>
      (write.versionId ?? NULL) === NULL &&
      (entry.body === undefined ? write.body === undefined : write.name === entry.name) &&
      !acknowledged.some(({ from }) => from > write.until),
  )
  return standing.length > 0 ? [] : [`a later write of the version null was undone by ${entry.name || 'a removal'}`]
}

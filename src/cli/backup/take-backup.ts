import { existsSync } from 'node:fs'
import { join } from 'node:path'
import pMap from 'p-map'
import { copySnapshot, freeze } from '../../services/backup/frozen-databases.js'
import { bodyFiles, INDEX } from '../../services/backup/gateway-bodies.js'
import { type Database, openSnapshot } from '../../services/database.js'
import { Copies, type OpenedFile, type Previous } from './copies.js'
import { listData } from './data-tree.js'

/** Files copied at the same time. */
const AT_ONCE = 8
/** Most files that are opened while writers wait. */
const MOST_OPENED = 500
/** Number of passes over what changes while files are copied. */
const PASSES = 20

const SERVICES = 'services'
const INDEX_PATH = join(SERVICES, INDEX)

export interface Taken {
  readonly copies: Copies
  readonly at: Date
  /** Time for which writers had to wait, ms. */
  readonly pausedMs: number
  /** Files that the index of the gateway names, and that the data folder has lost. */
  readonly missing: readonly string[]
}

/**
 * Copies a data folder that servers may use meanwhile, as it is at one moment: the same as after `kill -9` at that
 * moment, from which every part of the server recovers. Most files are copied before, and the few that have changed are
 * opened at the moment, when no database is written: a file exists before a row names it, and is removed after its row.
 */
export async function takeBackup(data: string, into: string, previous: Previous | undefined): Promise<Taken> {
  const copies = new Copies(data, into, previous)
  for (let pass = 1; ; pass++) {
    const changed = changedFiles(data, copies)
    await pMap(changed, (path) => copies.copy(path), { concurrency: AT_ONCE })
    if (changed.length > MOST_OPENED / 10 && pass < PASSES) continue
    const taken = await moment(data, copies)
    if (taken !== undefined) return { copies, ...taken }
    if (pass >= PASSES)
      throw new Error(`More than ${MOST_OPENED} files change at a time. Try again when less is written.`)
  }
}

interface Seen {
  readonly at: Date
  /** Undefined: too many files have changed since the last pass. */
  readonly opened: readonly OpenedFile[] | undefined
  readonly all: ReadonlySet<string>
  readonly missing: readonly string[]
}

async function moment(data: string, copies: Copies): Promise<Omit<Taken, 'copies'> | undefined> {
  const { databases } = listData(data)
  const { snapshots, taken, pausedMs } = await freeze(
    databases.map((path) => join(data, path)),
    (snapshots) => openChanged(data, copies, snapshots.get(join(data, INDEX_PATH))?.db),
  )
  const { at, opened, all, missing } = taken
  try {
    if (opened === undefined) return undefined
    await pMap(opened, (file) => copies.copyOpened(file), { concurrency: AT_ONCE })
    await copies.keepOnly(all)
    for (const path of databases) {
      const snapshot = snapshots.get(join(data, path))
      if (snapshot) await copies.add(path, (file) => copySnapshot(snapshot, file))
    }
    return { at, pausedMs, missing }
  } finally {
    for (const snapshot of snapshots.values()) snapshot.close()
  }
}

/** Synchronous, because writers wait. */
function openChanged(data: string, copies: Copies, index: Database | undefined): Seen {
  const at = new Date()
  const { files } = listData(data)
  const all = new Set(files)
  const changed = files.filter((path) => copies.needs(path))
  for (const { path, size } of bodiesOf(index)) {
    all.add(path)
    if (copies.needsBody(path, size)) changed.push(path)
  }
  if (changed.length > MOST_OPENED) return { at, all, opened: undefined, missing: [] }
  const opened: OpenedFile[] = []
  const missing: string[] = []
  for (const path of changed) {
    const file = copies.open(path)
    if (file) opened.push(file)
    else {
      all.delete(path)
      missing.push(path)
    }
  }
  return { at, all, opened, missing }
}

function changedFiles(data: string, copies: Copies): string[] {
  const changed = listData(data).files.filter((path) => copies.needs(path))
  const index = join(data, INDEX_PATH)
  if (!existsSync(index)) return changed
  const snapshot = openSnapshot(index)
  try {
    for (const { path, size } of bodiesOf(snapshot.db)) if (copies.needsBody(path, size)) changed.push(path)
  } finally {
    snapshot.close()
  }
  return changed
}

function* bodiesOf(
  index: Database | undefined,
): Iterable<{ readonly path: string; readonly size: number | undefined }> {
  if (index === undefined) return
  for (const { path, size } of bodyFiles(index)) yield { path: join(SERVICES, path), size }
}

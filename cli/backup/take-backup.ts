import { type Dirent, existsSync, readdirSync, statSync } from 'node:fs'
import { join, sep } from 'node:path'
import type { DatabaseSyncInstance as Database } from '@photostructure/sqlite'
import pMap from 'p-map'
import { LAST_BACKUP_FILE } from '../../common/files/last-backup.js'
import { BODIES, type BodyFile, bodiesInStore, bodyFiles, copySnapshot, freeze, INDEX } from '../../services/backup.js'
import { openSnapshot } from '../../services/store/sqlite-files.js'
import { bytesText, type ProgressLine } from '../progress.js'
import { Copies, type OpenedFile, type Previous } from './copies.js'

const MAX_CONCURRENCY = 8

/** Most files that are opened while writers wait. */
const MAX_OPENED = 500

/** Number of passes over what changes while files are copied. */
const PASSES = 20

/** Uploads that take longer are found after the moment. */
const USUAL_UPLOAD_MS = 60_000

const SERVICES = 'services'
const INDEX_PATH = join(SERVICES, INDEX)

export interface Backup {
  readonly copies: Copies
  readonly at: Date
  /** Time for which writers had to wait, ms. */
  readonly pausedMs: number
  /** Files that the index of the gateway names, and that the data folder has lost. */
  readonly missing: readonly string[]
  /** Number of objects whose bytes are in an S3 store. */
  readonly inStore: number
}

/**
 * Copies a data folder that servers may use meanwhile, as it is at one moment: the same as after `kill -9` at that
 * moment, from which every part of the server recovers. Most files are copied before, and the few that have changed are
 * opened at the moment, when no database is written: a file exists before a row names it, and is removed after its row.
 */
export async function takeBackup(
  data: string,
  into: string,
  previous: Previous | undefined,
  progress: ProgressLine,
  leavesOut: LeavesOut = isLeftOut,
): Promise<Backup> {
  const seen = { bytes: 0, files: 0, changed: 0 }
  const show = () =>
    progress.show(() => `copied ${seen.files} of ${seen.changed} changed files, read ${bytesText(seen.bytes)}`)
  const copies = new Copies(data, into, previous, (bytes) => {
    seen.bytes += bytes
    show()
  })
  let absent: ReadonlySet<string> = new Set()
  for (let pass = 1; pass <= PASSES; pass++) {
    const since = Date.now() - USUAL_UPLOAD_MS
    const changed = changedFiles(data, copies, leavesOut)
    seen.changed += changed.length
    const copyOne = async (path: string) => {
      await copies.copy(path)
      seen.files++
      show()
    }
    await pMap(changed, copyOne, { concurrency: MAX_CONCURRENCY })
    if (changed.length > MAX_OPENED / 10 && pass < PASSES / 2) continue
    const taken = await moment(data, copies, since, leavesOut)
    if (taken === undefined) continue
    // A file that was removed after the moment is needed: its object is of the moment. One that is still absent is
    // lost.
    if (taken.missing.every((path) => absent.has(path))) return { copies, ...taken }
    absent = new Set(taken.missing)
  }
  throw new Error('Too many files change at a time. Try again when less is written.')
}

interface Seen {
  readonly at: Date
  readonly opened: readonly OpenedFile[]
  readonly all: Set<string>
}

/** Resolves undefined if too many files have changed since the last pass. */
async function moment(
  data: string,
  copies: Copies,
  since: number,
  leavesOut: LeavesOut,
): Promise<Omit<Backup, 'copies'> | undefined> {
  const { databases } = listData(data, leavesOut)
  const { snapshots, taken, pausedMs } = await freeze(
    databases.map((path) => join(data, path)),
    (snapshots) => openChanged(data, copies, bodiesOf(snapshots.get(join(data, INDEX_PATH))?.db, since), leavesOut),
  )
  try {
    if (taken === undefined) return undefined
    const { at, opened, all } = taken
    await pMap(opened, (file) => copies.copyOpened(file), { concurrency: MAX_CONCURRENCY })
    const index = snapshots.get(join(data, INDEX_PATH))?.db
    const missing = await copyRest(copies, all, bodiesOf(index))
    const inStore = index === undefined ? 0 : bodiesInStore(index)
    await copies.keepOnly(all)
    for (const path of databases) {
      const snapshot = snapshots.get(join(data, path))
      if (snapshot) await copies.add(path, (file) => copySnapshot(snapshot, file))
    }
    return { at, pausedMs, missing, inStore }
  } finally {
    for (const snapshot of snapshots.values()) snapshot.close()
  }
}

/** Synchronous, because writers wait. */
function openChanged(
  data: string,
  copies: Copies,
  newBodies: Iterable<BodyFile>,
  leavesOut: LeavesOut,
): Seen | undefined {
  const at = new Date()
  const { files } = listData(data, leavesOut)
  const changed = files.filter((path) => copies.needs(path))
  for (const { path, size } of newBodies) if (copies.needsBody(path, size)) changed.push(path)
  if (changed.length > MAX_OPENED) return undefined
  const opened = changed.map((path) => copies.open(path)).filter((file) => file !== undefined)
  return { at, opened, all: new Set(files) }
}

/** Adds all bodies of the moment to `all`, and copies those that were not opened. Resolves to those that are gone. */
async function copyRest(copies: Copies, all: Set<string>, bodies: Iterable<BodyFile>): Promise<string[]> {
  const rest: string[] = []
  const missing: string[] = []
  for (const { path, size } of bodies) {
    all.add(path)
    if (copies.needsBody(path, size)) rest.push(path)
  }
  const copyOne = async (path: string) => {
    if (!(await copies.copy(path))) missing.push(path)
  }
  await pMap(rest, copyOne, { concurrency: MAX_CONCURRENCY })
  return missing
}

function changedFiles(data: string, copies: Copies, leavesOut: LeavesOut): string[] {
  const changed = listData(data, leavesOut).files.filter((path) => copies.needs(path))
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

function* bodiesOf(index: Database | undefined, since?: number): Iterable<BodyFile> {
  if (index === undefined) return
  for (const { path, size } of bodyFiles(index, since)) yield { path: join(SERVICES, path), size }
}

/** What no backup needs: bodies while they are received, CARs while they are made, the space for a full disk. */
const LEFT_OUT: readonly RegExp[] = [
  new RegExp(`^${LAST_BACKUP_FILE.replace('.', '\\.')}$`),
  /^(spool|access-logs)$/,
  // Compiled code, where a container keeps it.
  /^\.cache$/,
  /^services\/(network|kubo|payment)\/staging$/,
  /^services\/payment\/packing$/,
  new RegExp(`^services/${posix(BODIES)}$`),
  /(^|\/)(lock|lock\.sqlite|worker-\d+\.sqlite)$/,
  /-(wal|shm|journal)$/,
  /\.(reserve|new)$/,
]

/** Whether a path below the data folder is not part of the backup. */
type LeavesOut = (path: string) => boolean

export function isLeftOut(path: string): boolean {
  return LEFT_OUT.some((pattern) => pattern.test(path))
}

const DATABASE = /\.db$|(^|\/)records\.sqlite$/

interface DataTree {
  /** Paths below the data folder. */
  readonly databases: readonly string[]
  readonly files: readonly string[]
}

/** Lists the data folder, without the bodies of objects, of which the index of the gateway tells. Synchronous. */
function listData(data: string, leavesOut: LeavesOut): DataTree {
  const databases: string[] = []
  const files: string[] = []
  const walk = (folder: string): void => {
    for (const entry of entriesOf(join(data, folder))) {
      const path = join(folder, entry.name)
      if (leavesOut(posix(path))) continue
      const kind = followed(join(data, path), entry)
      if (kind?.isDirectory()) walk(path)
      else if (DATABASE.test(path)) databases.push(path)
      else if (kind?.isFile()) files.push(path)
    }
  }
  walk('')
  return { databases, files }
}

/** Empty for a folder that has just been removed. */
function entriesOf(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}

/** Links lead to other disks, or to secrets; undefined for a broken one. */
function followed(path: string, entry: Dirent): Pick<Dirent, 'isFile' | 'isDirectory'> | undefined {
  return entry.isSymbolicLink() ? statSync(path, { throwIfNoEntry: false }) : entry
}

function posix(path: string): string {
  return path.split(sep).join('/')
}

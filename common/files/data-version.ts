import { join } from 'node:path'
import { version as programVersion } from './package-folder.js'
import { readIfExists, writePrivateFile } from './private-file.js'

/** The file that holds the version, below its folder. */
export const VERSION_FILE = 'version.json'

/** Converts a folder of one version to the next. May run again after a crash, so it first looks what is left to do. */
type Upgrade = (folder: string) => void

/**
 * The steps from version 0, a folder without the file, to that of this program. A released step never changes; a new
 * version appends one. Tables have versions of their own, and are adapted when they are opened.
 */
const UPGRADES: readonly Upgrade[] = [
  () => {},
  // Bodies may have names that no earlier version knows: it would remove their files as garbage.
  () => {},
  // Objects may have noncurrent versions: an earlier version would remove their bodies as garbage, and pass by locks.
  () => {},
]

interface VersionRecord {
  readonly version: number
  /** Version of the program that wrote it, for messages. */
  readonly dealgate: string
  /** Present while a restore fills the folder. */
  readonly restoring?: true
}

/** The folder cannot be used by this version of the program, or is incomplete. The message says what to do. */
export class DataVersionError extends Error {
  override readonly name = 'DataVersionError'
  readonly code = 'DATA_VERSION'
}

/**
 * Brings a folder to the version of this program, and records it. The caller holds the lock of the folder. Does nothing
 * to a folder of that version. A full or read-only disk does not prevent the start: a later one records the version.
 * @throws DataVersionError for a folder of a later version, or one that a restore has not completed
 */
export function bringUpToDate(folder: string, upgrades: readonly Upgrade[] = UPGRADES): void {
  const from = usableVersion(folder, upgrades.length)
  for (const [n, upgrade] of upgrades.entries()) {
    if (n < from) continue
    upgrade(folder)
    try {
      write(folder, { version: n + 1, dealgate: programVersion() })
    } catch (error) {
      if (!['ENOSPC', 'EDQUOT', 'EROFS'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
    }
  }
}

/** Whether `bringUpToDate` has nothing to do. Throws like it. */
export function isUpToDate(folder: string): boolean {
  return usableVersion(folder, UPGRADES.length) === UPGRADES.length
}

/** Checks what `bringUpToDate` checks, without a change, for a process that does not hold the lock. */
export function requireUsableVersion(folder: string): void {
  usableVersion(folder, UPGRADES.length)
}

/** Marks a folder as incomplete until `endRestore`: no server starts with it. */
export function beginRestore(folder: string): void {
  write(folder, { version: UPGRADES.length, dealgate: programVersion(), restoring: true })
}

/** @param text the version file of the folder that was backed up */
export function endRestore(folder: string, text: string): void {
  parse(folder, text)
  writePrivateFile(join(folder, VERSION_FILE), text)
}

function usableVersion(folder: string, known: number): number {
  const kept = read(folder)
  if (kept?.restoring)
    throw new DataVersionError(
      `The data folder ${folder} is incomplete: a restore into it has not ended. Remove the folder, and restore the backup again.`,
    )
  const version = kept?.version ?? 0
  if (version > known)
    throw new DataVersionError(
      `The data folder ${folder} has version ${version}, written by dealgate ${kept?.dealgate}; this is dealgate ${programVersion()}, which can use version ${known} and earlier. Start the later dealgate, or restore a backup from before the upgrade.`,
    )
  return version
}

function read(folder: string): VersionRecord | undefined {
  const text = readIfExists(join(folder, VERSION_FILE))
  return text === undefined ? undefined : parse(folder, text)
}

function parse(folder: string, text: string): VersionRecord {
  try {
    const { version, dealgate, restoring } = JSON.parse(text) as Record<string, unknown>
    if (Number.isSafeInteger(version) && (version as number) >= 0 && typeof dealgate === 'string')
      return { version: version as number, dealgate, ...(restoring === true && { restoring }) }
  } catch {
    // A text that is no JSON gets the same message as any other wrong content.
  }
  throw new DataVersionError(`The file ${join(folder, VERSION_FILE)} is damaged. Restore it from a backup.`)
}

function write(folder: string, kept: VersionRecord): void {
  writePrivateFile(join(folder, VERSION_FILE), `${JSON.stringify(kept)}\n`)
}

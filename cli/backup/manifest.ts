import { createHash } from 'node:crypto'
import { readdir, rename, rm, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { z } from 'zod'
import { lockFile } from '../../common/files/lock-file.js'
import { makePrivateDatabase, makePrivateFolder, syncFolder } from '../../common/files/private-file.js'
import { Failure } from '../command.js'
import { CONTENT, type FileList, StoredFiles } from './copies.js'

/** Lines of `sha256sum`, so that `sha256sum --check files.txt` verifies a backup, too. */
const LIST = 'files.txt'
const MANIFEST = 'manifest.json'

const schema = z.object({
  format: z.literal(1),
  /** The moment of all data in it, ISO 8601. */
  taken: z.string(),
  dealgate: z.string(),
  files: z.number(),
  bytes: z.number(),
  /** SHA-256 of the list of files. */
  listSha256: z.string(),
  /** What the server uses and the backup does not have. */
  notIncluded: z.array(z.string()),
})

export type Manifest = z.infer<typeof schema>

/** Writes the list and, last, the manifest: a folder without it is no backup. */
export async function writeManifest(
  backup: string,
  files: FileList,
  about: Omit<Manifest, 'format' | 'files' | 'listSha256'>,
): Promise<Manifest> {
  const list = [...files].sort(byPath).map(([path, sha256]) => `${sha256}  ${CONTENT}/${path}\n`)
  const text = list.join('')
  const manifest: Manifest = { format: 1, ...about, files: files.size, listSha256: sha256Of(text) }
  await writeFile(join(backup, LIST), text, { mode: 0o600, flush: true })
  await writeFile(join(backup, MANIFEST), `${JSON.stringify(manifest, undefined, 2)}\n`, { mode: 0o600, flush: true })
  return manifest
}

/** Resolves undefined for a folder that is no backup. Throws Failure for a damaged one. */
export async function readManifest(backup: string): Promise<ListedFile | undefined> {
  const stored = await StoredFiles.in(backup).catch(unlessAbsent)
  const text = await stored?.text(MANIFEST)
  if (stored === undefined || text === undefined) return undefined
  const manifest = parsed(backup, text)
  const list = await stored.text(LIST)
  if (list === undefined || sha256Of(list) !== manifest.listSha256) throw damaged(backup, LIST)
  const files = new Map<string, string>()
  for (const line of list.split('\n').slice(0, -1)) {
    const [, sha256, path] = /^([0-9a-f]{64}) {2}data\/(.+)$/.exec(line) ?? []
    if (sha256 === undefined || path === undefined || !staysBelow(path)) throw damaged(backup, LIST)
    files.set(path, sha256)
  }
  return { manifest, files }
}

/** A list that others wrote must not name a file elsewhere, or the same one in two ways. */
function staysBelow(path: string): boolean {
  return !path.includes('\0') && path.split(/[/\\]/).every((name) => !['', '.', '..'].includes(name))
}

function unlessAbsent(error: NodeJS.ErrnoException): undefined {
  if (['ENOENT', 'ENOTDIR'].includes(error.code ?? '')) return undefined
  throw error
}

export function damaged(backup: string, file: string): Failure {
  return new Failure(`The backup ${backup} is damaged: ${file} is not as it was written. Use another backup.`)
}

function parsed(backup: string, text: string): Manifest {
  try {
    return schema.parse(JSON.parse(text))
  } catch {
    throw new Failure(
      `${join(backup, MANIFEST)} is damaged, or of a later version of dealgate. Use that version, or another backup.`,
    )
  }
}

function byPath([a]: readonly [string, string], [b]: readonly [string, string]): number {
  return a < b ? -1 : 1
}

function sha256Of(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

/** `2026-11-23T01-02-03.456Z`: the names sort by time. */
const NAME = /^\d{4}-\d{2}-\d{2}T\d{2}-\d{2}-\d{2}\.\d{3}Z$/
const UNFINISHED = '.unfinished-'

/** The folder that holds backups, each a folder named by its time. One process at a time writes to it. */
export class BackupsFolder {
  readonly #folder: string
  readonly #release: () => void

  private constructor(folder: string, release: () => void) {
    this.#folder = folder
    this.#release = release
  }

  /** Creates the folder unless it exists, and removes what an interrupted run has left. Throws Failure. */
  static async open(folder: string): Promise<BackupsFolder> {
    makePrivateFolder(folder)
    const lock = join(folder, 'lock')
    makePrivateDatabase(lock)
    const release = lockFile(lock)
    if (release === undefined) throw new Failure(`Another backup to ${folder} is running. Wait for its end.`)
    try {
      for (const name of await readdir(folder))
        if (name.startsWith(UNFINISHED)) await rm(join(folder, name), { recursive: true })
      return new BackupsFolder(folder, release)
    } catch (error) {
      release()
      throw error
    }
  }

  begin(): string {
    const folder = join(this.#folder, `${UNFINISHED}${process.pid}`)
    makePrivateFolder(folder)
    return folder
  }

  /** Gives a complete backup its name. Durable when the promise resolves. */
  async complete(unfinished: string, taken: Date): Promise<string> {
    const folder = join(this.#folder, taken.toISOString().replaceAll(':', '-'))
    await syncFolder(unfinished)
    await rename(unfinished, folder)
    await syncFolder(this.#folder)
    return folder
  }

  newest(): Promise<string | undefined> {
    return newestIn(this.#folder)
  }

  /** Removes the oldest backups beyond that number. Resolves with the number of removed ones. */
  async keep(count: number): Promise<number> {
    const old = (await namesIn(this.#folder)).slice(0, -count)
    for (const name of old) {
      // An interrupted removal must not leave what looks like a backup.
      const doomed = join(this.#folder, `${UNFINISHED}${name}`)
      await rename(join(this.#folder, name), doomed)
      await rm(doomed, { recursive: true })
    }
    return old.length
  }

  close(): void {
    this.#release()
  }
}

/** The backup at a path: that folder itself, or the newest in it. Throws Failure when there is none. */
export async function findBackup(path: string): Promise<string> {
  if (await readManifest(path)) return path
  const newest = await newestIn(path)
  if (newest === undefined) throw new Failure(`${resolve(path)} is no backup, and has none in it.`)
  return newest
}

async function newestIn(folder: string): Promise<string | undefined> {
  const name = (await namesIn(folder)).at(-1)
  return name === undefined ? undefined : join(folder, name)
}

/** Oldest first. */
async function namesIn(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch((error) => {
    if (['ENOENT', 'ENOTDIR'].includes(error.code)) return []
    throw error
  })
  // A link is not a backup of this folder.
  const folders = entries.filter((entry) => entry.isDirectory())
  return folders.flatMap(({ name }) => (NAME.test(name) ? [name] : [])).sort()
}

export interface ListedFile {
  readonly manifest: Manifest
  readonly files: FileList
}

import { createHash } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { Failure } from '../failure.js'
import { StoredFiles } from './stored-files.js'

/** Lines of `sha256sum`, so that `sha256sum --check files.txt` verifies a backup, too. */
export const LIST = 'files.txt'
const MANIFEST = 'manifest.json'
/** The folder of the copied files. */
export const CONTENT = 'data'

const schema = z.object({
  format: z.literal(1),
  /** The moment of all data in it, ISO 8601. */
  taken: z.string(),
  /** Version of the program. */
  dealgate: z.string(),
  files: z.number(),
  bytes: z.number(),
  /** SHA-256 of the list of files. */
  listSha256: z.string(),
  /** What the server uses and the backup does not have. */
  notIncluded: z.array(z.string()),
})

export type Manifest = z.infer<typeof schema>

/** SHA-256 by path below the data folder. */
export type FileList = ReadonlyMap<string, string>

export interface Listed {
  readonly manifest: Manifest
  readonly files: FileList
}

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
export async function readManifest(backup: string): Promise<Listed | undefined> {
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

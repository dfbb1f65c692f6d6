import { readdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import pMap from 'p-map'
import { beginRestore, endRestore, VERSION_FILE } from '../../common/files/data-version.js'
import { makeFolders, makePrivateFolder, syncFolder } from '../../common/files/private-file.js'
import { Failure, print } from '../command.js'
import type { Config } from '../config/config.js'
import { ProgressLine, partText } from '../progress.js'
import { CONTENT, closeFd, copyOpened, digestOf, digestOfOpened, type OnBytes, StoredFiles } from './copies.js'
import { damaged, findBackup, type ListedFile, readManifest } from './manifest.js'

interface RestoreFlags {
  readonly check?: boolean
}

const MAX_CONCURRENCY = 8
/** In a new file system. */
const NOTHING = ['lost+found']

/** `dealgate restore <backup>`: fills an empty data folder, or only checks the backup. */
export async function restore(config: Config, path: string, own: RestoreFlags): Promise<void> {
  const backup = await findBackup(path)
  const listed = await readManifest(backup)
  if (listed === undefined) throw new Failure(`${backup} is no backup.`)
  const progress = new ProgressLine()
  let read = 0
  const onBytes = (bytes: number) => {
    read += bytes
    progress.show(() => `${own.check ? 'checked' : 'restored'} ${partText(read, listed.manifest.bytes)}`)
  }
  try {
    if (own.check) await check(backup, listed, onBytes)
    else await fill(config.data, backup, listed, onBytes)
  } finally {
    progress.clear()
  }
  const { taken, files, bytes, notIncluded } = listed.manifest
  print(
    config,
    { backup, taken, files, bytes, notIncluded, ...(own.check ? {} : { data: config.data }) },
    [
      `backup     ${backup}, taken at ${taken}`,
      `files      ${files}, each with the bytes that were written to it`,
      ...(own.check ? [] : [`data       ${config.data}`]),
      ...notIncluded.map((what) => `not in it  ${what}`),
      '',
    ].join('\n'),
  )
}

async function check(backup: string, { files }: ListedFile, onBytes: OnBytes): Promise<void> {
  const stored = await StoredFiles.in(backup)
  await pMap(
    files,
    async ([path, sha256]) => {
      const fd = await stored.open(`${CONTENT}/${path}`)
      if (fd === undefined || (await digestOfOpened(fd, onBytes)) !== sha256) throw damaged(backup, path)
    },
    { concurrency: MAX_CONCURRENCY },
  )
}

async function fill(data: string, backup: string, { files }: ListedFile, onBytes: OnBytes): Promise<void> {
  const present = (await readdir(data).catch(unlessAbsent)) ?? []
  if (present.some((name) => !NOTHING.includes(name)))
    throw new Failure(`${data} is not empty. Restore into a new folder, or move this one away first.`)
  makePrivateFolder(data)
  const stored = await StoredFiles.in(backup)
  const paths = [...files.keys()]
  const versions: string[] = paths.filter((path) => path === VERSION_FILE || path === `services/${VERSION_FILE}`)
  const roots = versions.map((path) => join(data, dirname(path)))
  for (const root of roots) {
    makeFolders(root)
    beginRestore(root)
  }
  const folders = await createFolders(data, paths)
  await pMap(
    files,
    async ([path, sha256]) => {
      if (versions.includes(path)) return
      if ((await copy(stored, path, join(data, path), onBytes)) !== sha256) throw damaged(backup, path)
    },
    { concurrency: MAX_CONCURRENCY },
  )
  for (const folder of folders) await syncFolder(folder)
  for (const path of versions) {
    const text = await stored.text(`${CONTENT}/${path}`)
    if (text === undefined) throw damaged(backup, path)
    endRestore(join(data, dirname(path)), text)
    if ((await digestOf(join(data, path))) !== files.get(path)) throw damaged(backup, path)
  }
}

async function createFolders(data: string, paths: readonly string[]): Promise<ReadonlySet<string>> {
  const folders = new Set([data])
  for (const path of paths)
    for (let folder = dirname(path); folder !== '.'; folder = dirname(folder)) folders.add(join(data, folder))
  for (const folder of folders) makeFolders(folder)
  return folders
}

async function copy(stored: StoredFiles, path: string, to: string, onBytes: OnBytes): Promise<string | undefined> {
  const fd = await stored.open(`${CONTENT}/${path}`)
  if (fd === undefined) return undefined
  try {
    return await copyOpened(fd, to, onBytes)
  } finally {
    await closeFd(fd)
  }
}

function unlessAbsent(error: NodeJS.ErrnoException): undefined {
  if (error.code === 'ENOENT') return undefined
  throw error
}

import { existsSync, realpathSync } from 'node:fs'
import { join, relative, resolve, sep } from 'node:path'
import { requireUsableVersion, VERSION_FILE } from '../../common/files/data-version.js'
import { noteBackup } from '../../common/files/last-backup.js'
import { version } from '../../common/files/package-folder.js'
import { makePrivateFolder } from '../../common/files/private-file.js'
import { KEY_FILE } from '../../src/objects/encryption/key-file.js'
import { describeError, Failure } from '../command.js'
import { type Config, ConfigError } from '../config/config.js'
import { credentialsPath } from '../keys/credentials-file.js'
import { ProgressLine } from '../progress.js'
import { servicesFolder } from '../serve/gateway.js'
import { BackupsFolder, type Manifest, readManifest, writeManifest } from './manifest.js'
import { type Backup, isLeftOut, takeBackup } from './take-backup.js'

interface BackupFlags {
  readonly keep?: string
  readonly verify?: boolean
  readonly withKeys?: boolean
}

const MAX_KEPT = 100_000

export async function backup(config: Config, destination: string, own: BackupFlags): Promise<void> {
  const keep = own.keep === undefined ? undefined : Number(own.keep)
  if (keep !== undefined && !(Number.isInteger(keep) && keep >= 1 && keep <= MAX_KEPT))
    throw new ConfigError([`--keep must be 1 to ${MAX_KEPT}`])
  const { data } = config
  checkData(config)
  const folder = resolve(destination)
  makePrivateFolder(folder)
  if (!isOutside(realpathSync(data), realpathSync(folder)))
    throw new Failure(`${folder} is in the data folder ${data}. Choose a folder elsewhere, best on another disk.`)
  const backups = await BackupsFolder.open(folder)
  const progress = new ProgressLine()
  try {
    const unfinished = backups.begin()
    const newest = await backups.newest()
    // A damaged backup shares nothing, and must not prevent a new one.
    const listed = newest === undefined ? undefined : await readManifest(newest).catch(() => undefined)
    const { verify = false } = own
    const previous = newest !== undefined && listed ? { folder: newest, files: listed.files, verify } : undefined
    const hasKeys = keysIn(config)
    const leavesOut = (path: string) => isLeftOut(path) || (!own.withKeys && hasKeys(path))
    const taken = await takeBackup(data, unfinished, previous, progress, leavesOut)
    const { copies, at } = taken
    await copies.sync()
    const manifest = await writeManifest(unfinished, copies.files, {
      taken: at.toISOString(),
      dealgate: version(),
      bytes: copies.bytes,
      notIncluded: [...inStore(taken), ...keysApart(config, own), ...notIncluded(config)],
    })
    const path = await backups.complete(unfinished, at)
    note(data, at)
    const removed = keep === undefined ? 0 : await backups.keep(keep)
    progress.clear()
    process.stdout.write(
      config.print === 'json' ? json(path, manifest, taken, removed) : text(path, manifest, taken, removed),
    )
  } finally {
    progress.clear()
    backups.close()
  }
}

/** A data folder that this user cannot write to has its backup all the same. */
function note(data: string, at: Date): void {
  try {
    noteBackup(data, at)
  } catch (error) {
    const reason = describeError(error)
    process.stderr.write(`dealgate: the metrics of the server will not show this backup: ${reason}\n`)
  }
}

function checkData(config: Config): void {
  const { data } = config
  const services = servicesFolder(config)
  if (!existsSync(data)) throw new Failure(`There is no data folder ${data}. Name it with --data.`)
  for (const folder of [data, services]) requireUsableVersion(folder)
  const unknown = [join(data, 'state'), join(services, 'gateway')].filter(existsSync)
  if (unknown.length === 0) throw new Failure(`${data} is not a data folder of dealgate. Name one with --data.`)
  for (const folder of unknown) {
    if (!existsSync(join(folder, '..', VERSION_FILE)))
      throw new Failure(`An earlier version of dealgate has written ${data}. Start this version with it once.`)
  }
}

function text(path: string, manifest: Manifest, taken: Backup, removed: number): string {
  const { copies, pausedMs, missing } = taken
  const lines = [
    `backup     ${path}`,
    `files      ${manifest.files}, ${copies.linked} of them shared with the backup before`,
    `bytes      ${manifest.bytes}`,
    `paused     writes waited ${Math.ceil(pausedMs)} ms`,
    ...(removed > 0 ? [`removed    ${removed} older backups`] : []),
    ...manifest.notIncluded.map((what) => `not in it  ${what}`),
    ...copies.damaged.map((what) => `DAMAGED    ${what} in the backup before: it is copied again`),
    ...missing.map((what) => `MISSING    ${what}: the data folder has lost the bytes of this object`),
  ]
  return `${lines.join('\n')}\n`
}

function json(path: string, manifest: Manifest, { copies, pausedMs, missing }: Backup, removed: number): string {
  const { taken, files, bytes } = manifest
  const counts = { files, bytes, linked: copies.linked, pausedMs: Math.ceil(pausedMs), removed }
  return `${JSON.stringify({ backup: path, taken, ...counts, notIncluded: manifest.notIncluded, damaged: copies.damaged, missing })}\n`
}

function inStore({ inStore: count }: Backup): string[] {
  if (count === 0) return []
  return [
    `the bytes of ${count} objects in an S3 store (--bodies): keep the versions of its bucket, and its own backups`,
  ]
}

/** Whether a path below the data folder is that of keys, or of a copy of the file that the server makes. */
function keysIn({ data, encryptionKeys }: Config): (path: string) => boolean {
  const names: string[] = []
  if (encryptionKeys !== undefined && existsSync(encryptionKeys))
    for (const file of [resolve(encryptionKeys), realpathSync(encryptionKeys)])
      for (const folder of [resolve(data), realpathSync(data)]) names.push(relative(folder, file).split(sep).join('/'))
  return (path) => path === KEY_FILE || path.startsWith(`${KEY_FILE}.`) || names.includes(path)
}

/** Names the keys that a backup leaves out: who gets hold of it must not be able to open what it contains. */
function keysApart({ data, encryptionKeys }: Config, { withKeys = false }: BackupFlags): string[] {
  const file = encryptionKeys ?? join(data, KEY_FILE)
  const included = withKeys && !isOutside(data, file)
  if (included || !existsSync(file)) return []
  return [
    `the keys of encrypted objects in ${file}: keep a copy elsewhere (dealgate encryption export), or use --with-keys`,
  ]
}

/** What a server with these options uses, and a backup of its data folder does not contain. Without secrets. */
function notIncluded(config: Config): string[] {
  const { data, state, database, gatewayUrl, platformUrl, paymentUrl, kuboApi, staging, sealingKey, sealingKeyFile } =
    config
  const credentials = credentialsPath(config)
  return [
    state &&
      `the records in ${place(state)} (--state): back up that database with its own tools, right after this backup`,
    database &&
      `the tables of the services in ${place(database)} (--database): back up that database with its own tools, and the folder ${join(servicesFolder(config), 'gateway', 'objects')} after it`,
    gatewayUrl && `the objects and deals of the gateway ${place(gatewayUrl)}`,
    gatewayUrl === undefined && platformUrl && `the task platform ${place(platformUrl)}`,
    gatewayUrl !== undefined && paymentUrl && `the storage payment API ${place(paymentUrl)}`,
    kuboApi && `the content of deals at the Kubo node ${place(kuboApi)}`,
    !['local', 'gateway'].includes(staging) && `parts of multipart uploads in ${staging} (--staging)`,
    isOutside(data, credentials) && `the credentials file ${credentials}`,
    (sealingKey ?? sealingKeyFile) !== undefined && 'the sealing key of the options',
    'the config file, variables and TLS certificates of the server',
  ].filter((text) => typeof text === 'string')
}

function isOutside(folder: string, path: string): boolean {
  return relative(folder, path).startsWith('..')
}

function place(url: string): string {
  const { protocol, host } = new URL(url)
  return `${protocol}//${host}`
}

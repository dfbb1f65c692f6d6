import { createHash } from 'node:crypto'
import type { Column } from './columns.js'
import { baseOf, type InventoryConfiguration } from './configuration.js'
import { FORMATS } from './files.js'

/** A file of an inventory as its manifest states it. */
export interface ManifestFile {
  readonly key: string
  /** Bytes. */
  readonly size: number
  readonly MD5checksum: string
}

/** A small object of an inventory. */
interface Announcement {
  readonly key: string
  readonly contentType: string
  readonly text: string
}

/** The form of S3's manifests. */
const VERSION = '2016-11-30'

/**
 * The key of a file. It is that of the same file when the run is repeated after a crash, which replaces what is there.
 * @param run names the run
 */
export function fileKey(
  bucket: string,
  configuration: Pick<InventoryConfiguration, 'id' | 'destination'>,
  run: string,
  number: number,
): string {
  const hash = createHash('sha256').update(`${run}/${number}`).digest('hex')
  // A UUID of version 8: https://www.rfc-editor.org/rfc/rfc9562#section-5.8
  const uuid = [
    hash.slice(0, 8),
    hash.slice(8, 12),
    `8${hash.slice(13, 16)}`,
    `8${hash.slice(17, 20)}`,
    hash.slice(20, 32),
  ]
  return `${baseOf(bucket, configuration)}data/${uuid.join('-')}.${FORMATS[configuration.destination.format].extension}`
}

/**
 * The name of a run in keys: the minute in which it began, with the seconds if that minute has one already.
 * @param taken the names of runs before
 */
export function runName(started: number, taken: string | undefined): string {
  const time = new Date(started).toISOString()
  const minute = time.slice(0, 16).replace(':', '-')
  return taken?.startsWith(minute) ? `${minute}-${time.slice(17, 19)}` : minute
}

/** What announces a complete inventory, in the order in which it is stored: the checksum of the manifest comes last. */
export function announcements(
  bucket: string,
  configuration: Pick<InventoryConfiguration, 'id' | 'destination'>,
  run: { readonly name: string; readonly started: number; readonly files: readonly ManifestFile[] },
  columns: readonly Column[],
): readonly Announcement[] {
  const { destination } = configuration
  const base = baseOf(bucket, configuration)
  const manifest = JSON.stringify(
    {
      sourceBucket: bucket,
      destinationBucket: `arn:aws:s3:::${destination.bucket}`,
      version: VERSION,
      creationTimestamp: String(run.started),
      fileFormat: destination.format,
      fileSchema: FORMATS[destination.format].schema(columns),
      files: run.files,
    },
    null,
    2,
  )
  const links = run.files.map(({ key }) => `s3://${destination.bucket}/${key}\n`).join('')
  const folder = `${base}${run.name}Z/`
  return [
    { key: `${base}hive/dt=${run.name.replace('T', '-')}/symlink.txt`, contentType: 'text/plain', text: links },
    { key: manifestKey(bucket, configuration, run.name), contentType: 'application/json', text: manifest },
    {
      key: `${folder}manifest.checksum`,
      contentType: 'text/plain',
      text: createHash('md5').update(manifest).digest('hex'),
    },
  ]
}

export function manifestKey(
  bucket: string,
  configuration: Pick<InventoryConfiguration, 'id' | 'destination'>,
  name: string,
): string {
  return `${baseOf(bucket, configuration)}${name}Z/manifest.json`
}

import { createHash, randomBytes } from 'node:crypto'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { type Database, inTransaction } from '../../database.js'
import type { ServicesLog } from '../../log.js'
import type { Bodies, NewBody, OpenBody, StoredBody } from '../../store/bodies.js'
import { FolderBodies } from '../../store/folder-bodies.js'
import { S3Bodies } from '../../store/s3-bodies.js'
import { type ClaimRecord, S3Claim } from '../../store/s3-claim.js'
import { isPassing, S3Client } from '../../store/s3-client.js'
import { type AwsVariables, parseS3Url, readS3Credentials, type S3Place } from '../../store/s3-place.js'
import { type GatewayLimits, gatewayLimits } from '../limits.js'
import { INDEX_FILE } from './schema.js'

export interface BodiesOptions {
  /** `s3://bucket/prefix?endpoint=https://…&region=…` */
  readonly url: string
  /** In the form of AWS; default the variables and the file of AWS clients. */
  readonly credentialsFile?: string | undefined
  readonly variables?: AwsVariables
}

/** Within the folder of a store. It shows that the folder is that of this index, and who uses it. */
const MARKER = 'dealgate.json'

/**
 * Opens the places of bodies: the folder, and the store if there is one, which gets all new bodies. Throws RangeError
 * when the store refuses, or is not the one that has the bodies of the index. One that does not answer is asked again
 * before it is used.
 */
export async function openBodies(
  folder: string,
  db: Database,
  options: BodiesOptions | undefined,
  limits: GatewayLimits,
  log: ServicesLog,
): Promise<Bodies> {
  const files = new FolderBodies(join(folder, 'objects'), log)
  if (options === undefined) {
    if (!hasStored(db)) return files
    throw new RangeError('The bodies of objects are in an S3 store: start with the --bodies that names it.')
  }
  const place = parseS3Url(options.url)
  const times = { patienceMs: limits.storeMs, idleMs: limits.storeIdleMs }
  const client = new S3Client(place, () => readS3Credentials(options.credentialsFile, options.variables ?? {}), times)
  const own = `${folderOf(place)}${ownFolder(db)}/`
  const { orphanMs } = limits
  const asked = { key: `${own}${MARKER}`, orphanMs, checkMs: limits.storeCheckMs }
  const claim = new S3Claim(client, new ClaimRow(db, join(folder, INDEX_FILE)), asked, log)
  try {
    await claim.proven()
  } catch (error) {
    const where = `the bucket ${place.bucket} at ${place.endpoint}`
    if (!isPassing(error)) {
      client.close()
      const why = error instanceof Error ? error.message : String(error)
      throw new RangeError(`The bodies of objects cannot be kept in ${where}. ${why}`, { cause: error })
    }
    log.warn({ err: error }, `The store of bodies does not answer: ${where}. Objects in it cannot be read or written.`)
  }
  const room = { folder: own, roomBytes: limits.storeRoomBytes, patienceMs: limits.storeMs, orphanMs }
  return new TwoPlaces(files, new S3Bodies(client, claim, room, log))
}

/**
 * Writes a body beside those of all indexes, reads a range of it and removes it. Resolves with what was done. Throws
 * what the store refuses.
 */
export async function tryBodies({ url, credentialsFile, variables = {} }: BodiesOptions): Promise<string> {
  const place = parseS3Url(url)
  const times = { patienceMs: gatewayLimits.storeMs, idleMs: gatewayLimits.storeIdleMs }
  const client = new S3Client(place, () => readS3Credentials(credentialsFile, variables), times)
  const key = `${folderOf(place)}dealgate-check-${randomBytes(8).toString('hex')}`
  const begun = performance.now()
  try {
    const put = { method: 'PUT', key, body: [Buffer.from('0123456789')] } as const
    const { head } = await client.patiently((_, signal) => client.ask(put, signal))
    const headers = { range: 'bytes=3-5', 'if-match': head.headers.etag ?? '' }
    const { body } = await client.patiently((_, signal) => client.ask({ method: 'GET', key, headers }, signal))
    await client.patiently((_, signal) => client.ask({ method: 'DELETE', key }, signal))
    if (body.toString() !== '345') throw new Error('It does not answer ranges.')
    return `${place.bucket} at ${place.endpoint}: a body was written, read and removed in ${Math.round(performance.now() - begun)} ms`
  } finally {
    client.close()
  }
}

function folderOf({ prefix }: S3Place): string {
  return prefix === '' ? '' : `${prefix}/`
}

/** The name of the folder that is made for this index, and for no other. */
function ownFolder(db: Database): string {
  return inTransaction(db, () => {
    const found = db.prepare('SELECT name FROM body_folder').get() as { readonly name: string } | undefined
    if (found !== undefined) return found.name
    const name = `dealgate-${randomBytes(8).toString('hex')}`
    db.prepare('INSERT INTO body_folder (name) VALUES (?)').run(name)
    return name
  })
}

function hasStored(db: Database): boolean {
  return db.prepare('SELECT 1 FROM objects WHERE body_mark IS NOT NULL LIMIT 1').get() !== undefined
}

/** The claim as the index keeps it. */
class ClaimRow implements ClaimRecord {
  readonly owner: string
  readonly #db: Database

  constructor(db: Database, file: string) {
    this.#db = db
    // A copy of the file, also one from a backup, is another file.
    const { ino, birthtimeNs } = statSync(file, { bigint: true })
    this.owner = createHash('sha256').update(`${ino} ${birthtimeNs}`).digest('hex').slice(0, 16)
  }

  get run(): string {
    return this.#row().run
  }

  get orphansFrom(): number {
    return this.#row().orphans_from
  }

  hasBodies(): boolean {
    return hasStored(this.#db)
  }

  claimed(run: string): void {
    this.#db.prepare('UPDATE body_folder SET run = ?').run(run)
  }

  orphansBegin(now: number): void {
    this.#db.prepare('UPDATE body_folder SET orphans_from = ?').run(now)
  }

  #row(): { readonly run: string; readonly orphans_from: number } {
    const row = this.#db.prepare('SELECT run, orphans_from FROM body_folder').get()
    return row as { readonly run: string; readonly orphans_from: number }
  }
}

/** Files that were there before there was a store, and the store, which gets all new bodies. */
class TwoPlaces implements Bodies {
  readonly #files: Bodies
  readonly #store: Bodies

  constructor(files: Bodies, store: Bodies) {
    this.#files = files
    this.#store = store
  }

  create(name: string, size: number): Promise<NewBody> {
    return this.#store.create(name, size)
  }

  committed(body: StoredBody): void {
    this.#of(body).committed(body)
  }

  open(body: StoredBody): Promise<OpenBody | undefined> {
    return this.#of(body).open(body)
  }

  discard(body: StoredBody): void {
    this.#of(body).discard(body)
  }

  async sweep(hasRow: (name: string) => boolean): Promise<number> {
    return (await this.#files.sweep(hasRow)) + (await this.#store.sweep(hasRow))
  }

  async close(): Promise<void> {
    await Promise.all([this.#files.close(), this.#store.close()])
  }

  #of({ mark }: StoredBody): Bodies {
    return mark === null ? this.#files : this.#store
  }
}

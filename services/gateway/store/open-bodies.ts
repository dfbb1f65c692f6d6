import { createHash, randomBytes } from 'node:crypto'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { nameFailure } from '../../../common/address-failure.js'
import { type ServicesLog, silentLog } from '../../log.js'
import type { Bodies, Compared, NewBody, OpenBody, StoredBody, WithRow } from '../../store/bodies.js'
import { type Database, tableOf } from '../../store/database.js'
import { FolderBodies } from '../../store/folder-bodies.js'
import { withLease } from '../../store/lease.js'
import { S3Bodies } from '../../store/s3-bodies.js'
import { type ClaimRecord, S3Claim } from '../../store/s3-claim.js'
import { S3Client } from '../../store/s3-client.js'
import { type AwsVariables, parseS3Url, readS3Credentials, type S3Location } from '../../store/s3-location.js'
import { isPassing } from '../../store/s3-refusal.js'
import type { StoreMetrics } from '../../store/store-metrics.js'
import { type KeptSums, VerifiedBodies } from '../../store/verified-bodies.js'
import { type GatewayLimits, gatewayLimits } from '../limits.js'
import { type BodySums, keptSums } from './body-sums.js'
import type { RetainedBodies } from './holds.js'
import type { Objects } from './objects.js'
import { INDEX_FILE } from './schema.js'

/** The bodies of an index, to be read beside the processes that use it. Nothing is written or removed. */
export interface BodyReader {
  readonly bodies: Bodies
  /** The mark that the store has for a body now; undefined for a file. Throws what the store does. */
  markOf(body: StoredBody): Promise<string | undefined>
  close(): Promise<void>
}

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
  db: Database<BodyTables>,
  options: BodiesOptions | undefined,
  limits: GatewayLimits,
  log: ServicesLog,
  metrics?: StoreMetrics,
): Promise<Bodies> {
  const files = new FolderBodies(join(folder, 'objects'), log, db.shared ? limits.orphanMs : undefined)
  const checked = (bodies: Bodies) => new VerifiedBodies(bodies, keptSums(db), log, (error) => metrics?.damaged(error))
  if (options === undefined) {
    if (!(await db.read.objects.anyInStore())) return checked(files)
    throw new RangeError(NOT_IN_FOLDER)
  }
  const location = parseS3Url(options.url)
  const times = { maxWaitMs: limits.storeMs, idleMs: limits.storeIdleMs }
  const client = new S3Client(
    location,
    () => readS3Credentials(options.credentialsFile, options.variables ?? {}, location),
    times,
    metrics?.bodies,
  )
  const own = `${folderOf(location)}${await ownFolder(db)}/`
  const { orphanMs } = limits
  const asked = { key: `${own}${MARKER}`, orphanMs, checkMs: limits.storeCheckMs }
  const claim = new S3Claim(client, new ClaimRow(db, await ownerOf(folder, db)), asked, log)
  try {
    await claim.proven()
  } catch (error) {
    const where = `the bucket ${location.bucket} at ${location.endpoint}`
    if (!isPassing(error)) {
      client.close()
      const why = nameFailure(error) ?? (error instanceof Error ? error.message : String(error))
      throw new RangeError(`The bodies of objects cannot be kept in ${where} (--bodies): ${why}`, { cause: error })
    }
    log.warn({ err: error }, `The store of bodies does not answer: ${where}. Objects in it cannot be read or written.`)
  }
  const { storeRoomBytes: roomBytes, storeMs: maxWaitMs } = limits
  const room = { folder: own, roomBytes, maxWaitMs, orphanMs, shared: db.shared }
  return checked(new TwoPlaces(files, new S3Bodies(client, claim, room, log)))
}

const NOT_IN_FOLDER = 'The bodies of objects are in an S3 store: start with the --bodies that names it.'

/** The bodies of an index, to be read while other processes use them. */
export async function readBodies(
  folder: string,
  read: BodyTables,
  options: BodiesOptions | undefined,
): Promise<BodyReader> {
  const files = new FolderBodies(join(folder, 'objects'), silentLog)
  const kept: KeptSums = { row: (generation, n) => read.bodySums.row(generation, n), adopt: async () => {} }
  const checked = (bodies: Bodies) => new VerifiedBodies(bodies, kept, silentLog)
  const own = await read.bodyFolder.find()
  if (options === undefined || own === undefined) {
    if (await read.objects.anyInStore()) throw new RangeError(NOT_IN_FOLDER)
    return { bodies: checked(files), markOf: async () => undefined, close: () => files.close() }
  }
  const { storeMs: maxWaitMs, storeIdleMs: idleMs, storeRoomBytes: roomBytes, orphanMs } = gatewayLimits
  const location = parseS3Url(options.url)
  const credentials = () => readS3Credentials(options.credentialsFile, options.variables ?? {}, location)
  const client = new S3Client(location, credentials, { maxWaitMs, idleMs })
  const claim = {
    proven: async () => {},
    mayWrite: () => Promise.reject(new Error(READ)),
    mayRemove: async () => false,
  }
  const room = { folder: `${folderOf(location)}${own.name}/`, roomBytes, maxWaitMs, orphanMs }
  const store = new S3Bodies(client, claim, room, silentLog)
  const both = new TwoPlaces(files, store)
  return {
    bodies: checked(both),
    markOf: async (body) => (body.mark === null ? undefined : store.markOf(body)),
    close: () => both.close(),
  }
}

const READ = 'These bodies were opened to read them.'

/**
 * Writes a body beside those of all indexes, reads a range of it and removes it. Resolves with what was done. Throws
 * what the store refuses.
 */
export async function tryBodies({ url, credentialsFile, variables = {} }: BodiesOptions): Promise<string> {
  const location = parseS3Url(url)
  const times = { maxWaitMs: gatewayLimits.storeMs, idleMs: gatewayLimits.storeIdleMs }
  const client = new S3Client(location, () => readS3Credentials(credentialsFile, variables, location), times)
  const key = `${folderOf(location)}dealgate-check-${randomBytes(8).toString('hex')}`
  const begun = performance.now()
  try {
    const put = { method: 'PUT', key, body: [Buffer.from('0123456789')] } as const
    const { head } = await client.retry((_, signal) => client.ask(put, signal))
    const headers = { range: 'bytes=3-5', 'if-match': head.headers.etag ?? '' }
    const { body } = await client.retry((_, signal) => client.ask({ method: 'GET', key, headers }, signal))
    await client.retry((_, signal) => client.ask({ method: 'DELETE', key }, signal))
    if (body.toString() !== '345') throw new Error('It does not answer ranges.')
    return `${location.bucket} at ${location.endpoint}: a body was written, read and removed in ${Math.round(performance.now() - begun)} ms`
  } finally {
    client.close()
  }
}

function folderOf({ prefix }: S3Location): string {
  return prefix === '' ? '' : `${prefix}/`
}

/** A copy of a server has another timeline as soon as it is written to, and a copy of a schema has other numbers. */
const place = {
  sqlite: 'SELECT 1 WHERE 0 = 1',
  postgres: `
    SELECT concat_ws(' ', s.system_identifier, c.timeline_id, d.oid, current_schema()::text::regnamespace::oid) AS place
    FROM pg_control_system() AS s, pg_control_checkpoint() AS c, pg_database AS d WHERE d.datname = current_database()
  `,
}

/** The table with the only row about the folder of the store. Call writing methods inside a transaction. */
export class BodyFolder extends tableOf((connection) => ({
  find: 'SELECT name, run, orphans_from AS "orphansFrom" FROM body_folder',
  add: 'INSERT INTO body_folder (name) VALUES (?)',
  claim: 'UPDATE body_folder SET run = ? WHERE run = ?',
  setOrphans: 'UPDATE body_folder SET orphans_from = ?',
  place: place[connection.engine],
})) {
  /** What a copy of a shared database has otherwise; undefined where it does not say. */
  async place(): Promise<string | undefined> {
    return (await this.sql.place.get<{ place: string }>())?.place
  }

  find(): Promise<FolderRow | undefined> {
    return this.sql.find.get<FolderRow>()
  }

  async add(name: string): Promise<void> {
    await this.sql.add.run(name)
  }

  async claim(run: string, was: string): Promise<boolean> {
    return (await this.sql.claim.run(run, was)) > 0
  }

  async setOrphans(from: number): Promise<void> {
    await this.sql.setOrphans.run(from)
  }
}

interface FolderRow {
  readonly name: string
  readonly run: string
  readonly orphansFrom: number
}

interface BodyTables {
  readonly objects: Objects
  readonly retained: RetainedBodies
  readonly bodySums: BodySums
  readonly bodyFolder: BodyFolder
}

/** The name of the folder that is made for this index, and for no other. */
function ownFolder(db: Database<BodyTables>): Promise<string> {
  return db.transaction(async ({ bodyFolder }) => {
    const found = await bodyFolder.find()
    if (found !== undefined) return found.name
    const name = `dealgate-${randomBytes(8).toString('hex')}`
    await bodyFolder.add(name)
    return name
  })
}

/** Id of the index: a copy of it, also one from a backup, has another. */
async function ownerOf(folder: string, db: Database<BodyTables>): Promise<string> {
  return createHash('sha256')
    .update(db.shared ? `${await db.read.bodyFolder.place()}` : fileIn(folder))
    .digest('hex')
    .slice(0, 16)
}

function fileIn(folder: string): string {
  const { ino, birthtimeNs } = statSync(join(folder, INDEX_FILE), { bigint: true })
  return `${ino} ${birthtimeNs}`
}

/** Longest wait for another process that claims the folder, ms: longer than a store may take for its steps. */
const MAX_CLAIM_MS = 60_000

/** The claim as the index keeps it. */
class ClaimRow implements ClaimRecord {
  readonly owner: string
  readonly alone: ClaimRecord['alone']
  readonly #db: Database<BodyTables>

  constructor(db: Database<BodyTables>, owner: string) {
    this.#db = db
    this.owner = owner
    this.alone = db.shared ? (work) => withLease(db.lease('claim'), work, MAX_CLAIM_MS) : undefined
  }

  async read(): Promise<FolderRow> {
    return (await this.#db.read.bodyFolder.find()) as FolderRow
  }

  hasBodies(): Promise<boolean> {
    return this.#db.read.objects.anyInStore()
  }

  claimed(run: string, was: string): Promise<boolean> {
    return this.#db.transaction(({ bodyFolder }) => bodyFolder.claim(run, was))
  }

  orphansBegin(now: number): Promise<void> {
    return this.#db.transaction(({ bodyFolder }) => bodyFolder.setOrphans(now))
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

  leave(body: StoredBody): void {
    this.#of(body).leave(body)
  }

  open(body: StoredBody, compared?: Compared): Promise<OpenBody | undefined> {
    return this.#of(body).open(body, compared)
  }

  discard(body: StoredBody): void {
    this.#of(body).discard(body)
  }

  async sweep(withRow: WithRow): Promise<number> {
    return (await this.#files.sweep(withRow)) + (await this.#store.sweep(withRow))
  }

  async close(): Promise<void> {
    await Promise.all([this.#files.close(), this.#store.close()])
  }

  #of({ mark }: StoredBody): Bodies {
    return mark === null ? this.#files : this.#store
  }
}

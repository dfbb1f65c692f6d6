import { randomBytes } from 'node:crypto'
import { rfc3339 } from '../../../clock.js'
import type { DealProgress } from '../../../network/network.js'
import { GatewayError } from '../../errors.js'
import type { GatewayLimits } from '../../limits.js'
import { bucketLock } from '../../store/buckets.js'
import { newGeneration } from '../../store/object-row.js'
import { addFiles, type DealMakerContext } from '../deal-maker.js'
import type { Progress } from '../deal-service.js'
import type { DealRow } from '../deals.js'
import type { ManifestFile } from '../manifest.js'
import { listBucket, PackingList } from '../packing-list.js'
import type { CarFiles } from './car-files.js'
import type { OfflineTask } from './offline-tasks.js'
import { providersOf } from './platform-client.js'
import { termsOf } from './task-form.js'

export interface PackContext extends DealMakerContext {
  readonly carFiles: CarFiles
  readonly limits: Pick<GatewayLimits, 'maxCarBytes' | 'maxCarBytesOfAccount'>
}

interface PackOptions {
  /** Most bytes of the pieces of all CARs together: the client pays for these. */
  readonly maxPieceBytes?: number | undefined
  onProgress(progress: Progress): void
  readonly signal: AbortSignal
}

const WHOLE_BUCKET = Buffer.alloc(0)
const SECRET_BYTES = 32

/**
 * Packs the objects of a task as they are now into as many CARs as their size asks, regardless of later writes and
 * removals. All of them are durable and recorded when the promise resolves. Throws GatewayError.
 */
export async function packTask(
  context: PackContext,
  task: OfflineTask,
  { maxPieceBytes = Number.POSITIVE_INFINITY, onProgress, signal }: PackOptions,
): Promise<void> {
  const { holds, db, run } = context
  const { read } = db
  const most = await mostBytes(context, task)
  try {
    const locks = [bucketLock({ id: task.bucket })]
    await db.transaction((tables) => holds.add(tables, task.uuid, task.bucket), { locks })
    const ids = await divide(context, task, most, signal)
    const deals = await Promise.all(ids.map((id) => read.deals.mustFind(id)))
    requirePieces(
      deals.map(({ bytes }) => leastPiece(bytes)),
      maxPieceBytes,
    )
    await requireShare(context, task)
    await requireRoom(context, deals)
    await context.carFiles.make(task.uuid)
    const { bytes: bytesTotal, files: filesTotal } = await read.offlineTasks.contentOf(task.id)
    let before = { bytes: 0, files: 0 }
    for (const deal of deals) {
      const { bytes, files } = before
      const report = ({ phase, bytesDone, filesDone }: DealProgress) =>
        onProgress({ phase, bytesDone: bytes + bytesDone, bytesTotal, filesDone: files + filesDone, filesTotal })
      await packDeal(context, task, deal, report, signal)
      before = { bytes: bytes + deal.bytes, files: files + deal.files }
    }
    const cars = await read.offlineTasks.cars(task.id)
    requirePieces(
      cars.map(({ pieceSize }) => pieceSize),
      maxPieceBytes,
    )
    await db.transaction(async ({ offlineTasks }) => {
      await offlineTasks.requirePacking(task.id, run.name)
      await offlineTasks.packed(task.id)
    })
  } finally {
    await holds.release(task.bucket, task.uuid)
  }
}

interface Most {
  readonly car: number
  /** Most bytes of a CAR with a single object, which may be larger. */
  readonly object: number
}

/** Throws GatewayError for a provider that takes none, or when no provider does. */
async function mostBytes({ network, limits }: PackContext, { form }: OfflineTask): Promise<Most> {
  const { minerId } = termsOf(form)
  const providers = await providersOf(network)
  const named = providers.filter((one) => minerId === null || one.minerId === minerId)
  if (minerId !== null && named.length === 0) throw refused(`There is no storage provider ${minerId} in this network.`)
  const taking = named.filter(({ offlineDealAvailable }) => offlineDealAvailable)
  if (taking.length === 0) {
    throw refused(
      minerId === null
        ? 'No storage provider of this network takes offline deals.'
        : `The storage provider ${minerId} takes no offline deals.`,
    )
  }
  const object = dataOfPiece(Math.max(...taking.map(({ maxPieceSize }) => maxPieceSize)))
  return { car: minerId === null ? limits.maxCarBytes : Math.min(limits.maxCarBytes, object), object }
}

/** Lists the objects and records which CAR each is to be in. Returns the ids of the deals. */
async function divide(context: PackContext, task: OfflineTask, most: Most, signal: AbortSignal): Promise<number[]> {
  const { db, holds } = context
  const snapshot = await db.snapshot()
  try {
    const slices = new Slices(most.car)
    const deals: number[] = []
    for await (const page of listBucket(snapshot, task.bucket, task.prefix)) {
      signal.throwIfAborted()
      let batch: ManifestFile[] = []
      const flush = async (): Promise<void> => {
        const deal = deals.at(-1)
        if (batch.length > 0 && deal !== undefined) await addFiles(context, { id: deal }, batch)
        batch = []
      }
      for (const file of page) {
        if (file.size > most.object) throw tooLarge(file, most)
        if (slices.add(file)) {
          await flush()
          deals.push(await addDeal(context, task))
        }
        batch.push(file)
      }
      await flush()
    }
    if (deals.length === 0) throw refused('There are no objects to store: upload some first, or choose another Prefix.')
    await holds.narrow(task.uuid, deals)
    return deals
  } finally {
    await snapshot.close()
  }
}

function addDeal({ db, run, network, clock }: PackContext, task: OfflineTask): Promise<number> {
  const { account, bucket, bucketName, form, id } = task
  const { minerId, duration, type, fastRetrieval } = termsOf(form)
  // The price is known when the deal is proposed.
  const terms = { minerId: minerId ?? '', price: '0', duration, verifiedDeal: type === 'verified', fastRetrieval }
  const ask = { account, bucketName, key: WHOLE_BUCKET, terms, token: undefined }
  return db.transaction(async ({ deals, offlineTasks }) => {
    await offlineTasks.requirePacking(id, run.name)
    return deals.add(ask, {
      ...{ bucket, reference: newGeneration(clock), network: network.kind },
      ...{ asked: rfc3339(clock.now()), task: id, run: null },
    })
  })
}

function tooLarge({ key, size }: ManifestFile, { object }: Most): GatewayError {
  return refused(
    `The object ${key} has ${size} bytes, and the largest piece of the storage provider has ${object}: choose another provider, or a Prefix without it.`,
  )
}

/** Throws GatewayError. The content may have grown since the client measured it. */
function requirePieces(sizes: readonly number[], most: number): void {
  const bytes = sizes.reduce((sum, size) => sum + size, 0)
  if (bytes <= most) return
  throw refused(
    `The objects need pieces of ${bytes} bytes now, and Max_Piece_Bytes is ${most}: measure them again, or choose another Prefix.`,
  )
}

/** Throws GatewayError. */
async function requireShare({ db, limits }: PackContext, { account }: OfflineTask): Promise<void> {
  const bytes = await db.read.offlineTasks.bytesOf(account)
  if (bytes <= limits.maxCarBytesOfAccount) return
  throw refused(
    `The CARs of this account would take ${bytes} bytes of the disk of the gateway, and ${limits.maxCarBytesOfAccount} are the most. CARs are removed when their deals are active: wait for that, or choose another Prefix.`,
  )
}

/** All CARs stay on the disk, and the largest takes twice its space while it is packed. */
async function requireRoom({ carFiles }: PackContext, deals: readonly DealRow[]): Promise<void> {
  const sizes = deals.map(({ bytes }) => bytes)
  await carFiles.list()
  const bytes = sizes.reduce((sum, size) => sum + size, 0) + sizes.reduce((most, size) => Math.max(most, size), 0)
  if (!(await carFiles.hasRoom(bytes))) throw new GatewayError('StorageFull')
}

async function packDeal(
  context: PackContext,
  task: OfflineTask,
  deal: DealRow,
  onProgress: (progress: DealProgress) => void,
  signal: AbortSignal,
): Promise<void> {
  const { network, carFiles, db, run } = context
  const { id } = deal
  const list = new PackingList(context, deal, signal)
  const car = await network.pack({
    target: carFiles.path(task.uuid, id),
    files: () => list.files(),
    bytesTotal: deal.bytes,
    onFile: (file) => list.packed(file),
    onProgress,
    signal,
  })
  const md5 = await carFiles.md5(task.uuid, id, signal)
  const secret = randomBytes(SECRET_BYTES).toString('base64url')
  await db.transaction(async ({ offlineTasks }) => {
    await offlineTasks.requirePacking(task.id, run.name)
    await offlineTasks.addCar(id, task.id, secret, md5, car)
  })
}

function refused(value: string): GatewayError {
  return new GatewayError('OfflineDealRefused', { value })
}

/** Bytes of content in one leaf of a DAG. */
const LEAF = 1024 * 1024

/** Most bytes that a leaf, a file and a CAR take besides content and names: heads of blocks, links, and directories. */
const PER_LEAF = 160
const PER_FILE = 320
const PER_CAR = 2048

/** Bytes of data in a piece: 127 of 128. */
function dataOfPiece(pieceSize: number): number {
  return Math.floor(pieceSize / 128) * 127
}

/** Bytes of the smallest piece that a CAR with so many bytes of content can have. */
function leastPiece(bytes: number): number {
  let size = 128
  while (dataOfPiece(size) < bytes) size *= 2
  return size
}

/** Divides files into CARs of at most `most` bytes, in their order. A larger file gets a CAR of its own. */
class Slices {
  readonly #most: number
  #bytes = Number.POSITIVE_INFINITY

  constructor(most: number) {
    this.#most = most
  }

  /** Adds a file. Returns true when it begins another CAR. */
  add(file: Pick<ManifestFile, 'key' | 'size'>): boolean {
    const bytes = bytesInCar(file)
    const begins = this.#bytes + bytes > this.#most
    this.#bytes = (begins ? PER_CAR : this.#bytes) + bytes
    return begins
  }
}

/** Bytes that a file takes in a CAR at most. A name stands in its directory, and may be replaced by a longer one. */
function bytesInCar({ key, size }: Pick<ManifestFile, 'key' | 'size'>): number {
  const directories = key.filter((byte) => byte === 0x2f).length
  return size + Math.ceil(size / LEAF) * PER_LEAF + (directories + 1) * PER_FILE + 2 * key.length
}

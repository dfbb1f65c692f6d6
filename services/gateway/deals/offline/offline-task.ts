import { formatFil, parseFil, priceOfPiece } from '../../../network/fil.js'
import { NetworkError, type OfflineDeals } from '../../../network/network.js'
import type { TaskRow } from '../../../platform/csv.js'
import { parsePrice } from '../../../platform/units.js'
import { GatewayError } from '../../errors.js'
import { type DealMakerContext, walletOf } from '../deal-maker.js'
import type { CompleteDeal } from '../deals.js'
import type { CarStatus, OfflineCar, OfflineTask } from './offline-tasks.js'
import type { PackContext } from './pack-task.js'
import { type PlatformClient, PlatformFailure, providersOf, type TaskDetails, TaskRefusal } from './platform-client.js'
import { termsOf } from './task-form.js'

const CONFLICT = 409

export interface SendContext extends PackContext {
  readonly offline: OfflineDeals
  urlOf(car: OfflineCar): string
}

/**
 * Proposes the deals of a packed task that names its provider, and posts the task on the platform. Each step is durable
 * and is done once, however often the call is repeated. Throws GatewayError: OfflineDealRefused when there will be no
 * task, another when the call is to be repeated.
 */
export async function sendTask(
  context: SendContext,
  task: OfflineTask,
  client: PlatformClient,
  signal: AbortSignal,
): Promise<OfflineTask> {
  const { db } = context
  const csv = await csvOf(context, task, await propose(context, task, signal))
  const posted = await asking(() => post(client, task, csv))
  await db.transaction(({ offlineTasks }) => offlineTasks.posted(task.id, posted.fileName, posted.message))
  return db.read.offlineTasks.mustFind(task.id)
}

async function asking<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await call()
  } catch (error) {
    if (error instanceof TaskRefusal) throw new GatewayError('OfflineDealRefused', { value: error.message }, error)
    if (error instanceof PlatformFailure) throw new GatewayError('NetworkUnavailable', { value: error.message }, error)
    throw error
  }
}

/** The deals of a private task, by the number of their CARs; none for a public one, whose bids decide. */
async function propose(
  context: SendContext,
  task: OfflineTask,
  signal: AbortSignal,
): Promise<ReadonlyMap<number, CompleteDeal>> {
  const { minerId } = termsOf(task.form)
  const proposed = new Map<number, CompleteDeal>()
  if (minerId === null) return proposed
  const bidder = await askOfProvider(context, task, minerId)
  for (const car of await context.db.read.offlineTasks.cars(task.id)) {
    proposed.set(car.deal, await proposeCar(context, context.offline, task, car, bidder, signal))
  }
  return proposed
}

async function csvOf(
  { db, urlOf }: SendContext,
  task: OfflineTask,
  proposed: ReadonlyMap<number, CompleteDeal>,
): Promise<string> {
  const rows = (await db.read.offlineTasks.cars(task.id)).map((car, n): TaskRow => {
    const record = proposed.get(car.deal)?.record
    return {
      fileSourceUrl: urlOf(car),
      uuid: task.uuid,
      sourceFileName: `${task.bucketName}-${n + 1}.car`,
      payloadCid: car.dataCid,
      pieceCid: car.pieceCid,
      fileSize: car.carSize,
      md5: car.md5,
      ...(record !== undefined && {
        minerId: record.terms.minerId,
        dealCid: record.dealCid,
        startEpoch: record.startEpoch,
      }),
    }
  })
  const { writeTaskCsv } = await import('../../../platform/csv.js')
  let csv = ''
  for await (const text of writeTaskCsv(rows)) csv += text
  return csv
}

async function post(
  client: PlatformClient,
  { form, uuid }: OfflineTask,
  csv: string,
): Promise<{ fileName: string; message: string }> {
  try {
    return await client.post(form, uuid, csv)
  } catch (error) {
    // The URLs are others after a change of the port: an earlier attempt may have succeeded with the former ones.
    const known = error instanceof TaskRefusal && error.status === CONFLICT && (await client.task(uuid)) !== undefined
    if (known) return { fileName: `${uuid}.csv`, message: 'Task created successfully.' }
    throw error
  }
}

/** States of a deal on the platform in which its provider needs the CAR no more. */
const OVER: readonly string[] = ['DealActive', 'ImportFailed']

/** States of a task that has no provider any more. */
const WITHOUT_PROVIDER: readonly string[] = ['ActionRequired', 'Expired', 'Closed']

/**
 * Asks the platform how a posted task goes on, records that, and removes the CARs that are needed no more. Throws
 * GatewayError when the platform cannot be asked; then nothing has changed.
 */
export async function followTask(context: SendContext, task: OfflineTask, client: PlatformClient): Promise<void> {
  const { db } = context
  const details = await asking(() => client.task(task.uuid))
  const cars = await db.read.offlineTasks.cars(task.id)
  const status = details?.task.status ?? task.taskStatus ?? ''
  const known = cars.map((car) => ({ car, now: details === undefined ? car : statusOf(details, car) }))
  await db.transaction(async ({ offlineTasks }) => {
    await offlineTasks.setStatus(task.id, status)
    for (const { car, now } of known) await offlineTasks.setCar(car.deal, now)
  })
  const over = details === undefined || WITHOUT_PROVIDER.includes(status)
  for (const { car, now } of known) {
    if (over || (await isOver(context, car, now))) await removeCar(context, task, car)
  }
  if ((await db.read.offlineTasks.cars(task.id)).some(({ present }) => present)) return
  await context.carFiles.removeAll(task.uuid)
  await db.transaction(({ offlineTasks }) => offlineTasks.end(task.id))
}

/**
 * Proposes the deal of a CAR to the provider that a public task has got, before that provider gets the bytes. Does
 * nothing for a deal that is proposed, and while the task has no provider. Throws GatewayError.
 */
export async function proposeToWinner(
  context: SendContext,
  task: OfflineTask,
  car: OfflineCar,
  client: PlatformClient,
  signal: AbortSignal,
): Promise<void> {
  if ((await context.db.read.deals.mustFind(car.deal)).record !== undefined) return
  const details = await asking(() => client.task(task.uuid))
  const minerId = details?.task.miner_id ?? undefined
  if (details === undefined || minerId === undefined) return
  const bidder = bidderOf(details, minerId) ?? (await askOfProvider(context, task, minerId))
  await proposeCar(context, context.offline, task, car, bidder, signal)
}

function bidderOf({ bid }: TaskDetails, minerId: string): Bidder | undefined {
  const won = bid.find(({ username, status }) => username === minerId && status === 'Won')
  const price = won && parsePrice(won.price)
  return price === undefined ? undefined : { minerId, price }
}

function statusOf({ task, deal }: TaskDetails, car: OfflineCar): CarStatus {
  const found = deal.find(({ file_source_url: url }) => url?.endsWith(`/${car.secret}`))
  if (found === undefined) return car
  const { id, status, note } = found
  return { platformDeal: id, status, note: note ?? null, minerId: task.miner_id ?? null }
}

/** A provider whose download failed may try again as long as the deal that it has been proposed can begin. */
async function isOver({ db, network }: SendContext, { deal }: OfflineCar, { status }: CarStatus): Promise<boolean> {
  if (status !== 'DownloadFailed') return OVER.includes(status ?? '')
  const { record } = await db.read.deals.mustFind(deal)
  return record === undefined || network.epoch() >= record.startEpoch
}

async function removeCar({ carFiles, db }: SendContext, { uuid }: OfflineTask, car: OfflineCar) {
  if (!car.present) return
  await carFiles.remove(uuid, car.deal)
  await db.transaction(({ offlineTasks }) => offlineTasks.gone(car.deal))
}

interface Bidder {
  readonly minerId: string
  /** Attofil per GiB and epoch. */
  readonly price: bigint
}

/**
 * Proposes the deal of a CAR, unless that has been done. Durable, with its record, when the promise resolves. Throws
 * GatewayError OfflineDealRefused, and NetworkUnavailable.
 */
async function proposeCar(
  context: DealMakerContext,
  offline: OfflineDeals,
  task: OfflineTask,
  car: OfflineCar,
  { minerId, price: perGiB }: Bidder,
  signal: AbortSignal,
): Promise<CompleteDeal> {
  const { db } = context
  const deal = await db.read.deals.mustFind(car.deal)
  if (deal.record !== undefined) return { ...deal, record: deal.record }
  const { maxPrice } = termsOf(task.form)
  if (maxPrice !== null && perGiB > maxPrice) {
    const value = `The storage provider ${minerId} asks ${formatFil(perGiB)} fil per GiB and epoch, more than Max_Price.`
    throw new GatewayError('OfflineDealRefused', { value })
  }
  const { dataCid, carSize, pieceCid, pieceSize } = car
  const price = formatFil(priceOfPiece(perGiB, pieceSize))
  try {
    const record = await offline.propose({
      reference: deal.reference,
      terms: { ...deal.terms, minerId, price },
      ...(await walletOf(context, task.account)),
      car: { dataCid, carSize, pieceCid, pieceSize },
      signal,
    })
    await db.transaction(({ deals }) => deals.complete(deal.id, record))
    return { ...deal, record }
  } catch (error) {
    if (!(error instanceof NetworkError)) throw error
    const passing = error.code === 'Unavailable' || error.code === 'ProviderOffline'
    throw new GatewayError(passing ? 'NetworkUnavailable' : 'OfflineDealRefused', { value: error.message }, error)
  }
}

/** The provider of a private task at its usual price, or the least one that the client offers if that is higher. */
async function askOfProvider({ network }: DealMakerContext, { form }: OfflineTask, minerId: string) {
  const { type, minPrice } = termsOf(form)
  const provider = (await providersOf(network)).find((one) => one.minerId === minerId)
  const asked = parseFil((type === 'verified' ? provider?.verifiedPrice : provider?.price) ?? '')
  if (asked === undefined) {
    const value = `The storage provider ${minerId} takes no ${type === 'verified' ? 'verified ' : ''}deals.`
    throw new GatewayError('OfflineDealRefused', { value })
  }
  return { minerId, price: minPrice !== null && minPrice > asked ? minPrice : asked }
}

import type { OfflineDeals } from '../../../network/network.js'
import type { TaskRow } from '../../../platform/csv/task-row.js'
import { writeTaskCsv } from '../../../platform/csv/write-task-csv.js'
import { GatewayError } from '../../errors.js'
import type { CompleteDeal } from '../deals.js'
import type { OfflineCar, OfflineTask } from './offline-tasks.js'
import type { PackContext } from './pack-task.js'
import { type PlatformClient, PlatformFailure, TaskRefusal } from './platform-client.js'
import { askOfProvider, proposeCar } from './propose-car.js'
import { termsOf } from './task-form.js'

const CONFLICT = 409

export interface SendContext extends PackContext {
  readonly offline: OfflineDeals
  /** URL of a CAR. */
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
  const { offlineTasks, writer } = context
  const csv = await csvOf(context, task, await propose(context, task, signal))
  const posted = await asking(() => post(client, task, csv))
  await writer.run(() => offlineTasks.posted(task.id, posted.fileName, posted.message))
  return offlineTasks.mustFind(task.id)
}

/** Runs a call of the platform. Throws GatewayError. */
export async function asking<T>(call: () => Promise<T>): Promise<T> {
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
  for (const car of context.offlineTasks.cars(task.id)) {
    proposed.set(car.deal, await proposeCar(context, context.offline, task, car, bidder, signal))
  }
  return proposed
}

async function csvOf(
  { offlineTasks, urlOf }: SendContext,
  task: OfflineTask,
  proposed: ReadonlyMap<number, CompleteDeal>,
): Promise<string> {
  const rows = offlineTasks.cars(task.id).map((car, n): TaskRow => {
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

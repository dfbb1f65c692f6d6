import { parsePrice } from '../../../platform/units/price.js'
import type { CarStatus, OfflineCar, OfflineTask } from './offline-tasks.js'
import type { PlatformClient, TaskDetails } from './platform-client.js'
import { askOfProvider, type Bidder, proposeCar } from './propose-car.js'
import { asking, type SendContext } from './send-task.js'

/** States of a deal on the platform in which its provider needs the CAR no more. */
const OVER: readonly string[] = ['DealActive', 'ImportFailed']
/** States of a task that has no provider any more. */
const WITHOUT_PROVIDER: readonly string[] = ['ActionRequired', 'Expired', 'Closed']

/**
 * Asks the platform how a posted task goes on, records that, and removes the CARs that are needed no more. Throws
 * GatewayError when the platform cannot be asked; then nothing has changed.
 */
export async function followTask(context: SendContext, task: OfflineTask, client: PlatformClient): Promise<void> {
  const { offlineTasks, writer } = context
  const details = await asking(() => client.task(task.uuid))
  const cars = offlineTasks.cars(task.id)
  const status = details?.task.status ?? task.taskStatus ?? ''
  const known = cars.map((car) => ({ car, now: details === undefined ? car : statusOf(details, car) }))
  await writer.run(() => {
    offlineTasks.setStatus(task.id, status)
    for (const { car, now } of known) offlineTasks.setCar(car.deal, now)
  })
  const over = details === undefined || WITHOUT_PROVIDER.includes(status)
  for (const { car, now } of known) if (over || isOver(context, car, now)) await removeCar(context, task, car)
  if (offlineTasks.cars(task.id).some(({ present }) => present)) return
  await context.carFiles.removeAll(task.uuid)
  await writer.run(() => offlineTasks.end(task.id))
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
  if (context.deals.mustFind(car.deal).record !== undefined) return
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
function isOver({ deals, network }: SendContext, { deal }: OfflineCar, { status }: CarStatus): boolean {
  if (status !== 'DownloadFailed') return OVER.includes(status ?? '')
  const { record } = deals.mustFind(deal)
  return record === undefined || network.epoch() >= record.startEpoch
}

async function removeCar({ carFiles, offlineTasks, writer }: SendContext, { uuid }: OfflineTask, car: OfflineCar) {
  if (!car.present) return
  await carFiles.remove(uuid, car.deal)
  await writer.run(() => offlineTasks.gone(car.deal))
}

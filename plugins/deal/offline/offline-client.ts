import type { Gateway, GatewayAnswer } from 'dealgate/plugin'
import { z } from 'zod'
import { envelope, type GatewayDeal } from '../deal-answers.js'
import { failureOfOrder } from '../deal-client.js'
import { type OfflineTerms, offlineBody } from '../terms/offline-terms.js'
import type { TaskRecord } from './task-records.js'

const text = z
  .union([z.string(), z.number()])
  .nullish()
  .transform((value) => String(value ?? ''))
const count = z.coerce.number().nonnegative().catch(0)

const madeTask = z.object({
  deals: z.object({ data: z.object({ taskname: text, filename: text, uuid: text }), status: text, message: text }),
})

/** The task that the gateway posted; '' for what it does not name. */
interface MadeTask {
  readonly uuid: string
  readonly taskName: string
  readonly fileName: string
  readonly message: string
}

const taskDeal = z.object({
  deal_id: text,
  deal_cid: text,
  status: text,
  note: text,
  miner_fid: text,
  payload_cid: text,
  piece_cid: text,
  piece_size: count,
  start_epoch: z.coerce.number().int().optional().catch(undefined),
  end_epoch: z.coerce.number().int().optional().catch(undefined),
  objects: z.array(z.unknown()).nullish().catch(undefined),
})

export type TaskDeal = z.output<typeof taskDeal>

const taskState = z.object({ task_status: text, deals: z.array(taskDeal).nullish() })

interface OfflineOrder {
  readonly bucket: string
  readonly prefix?: string | undefined
  readonly terms: OfflineTerms
  /** For gateways with `offlineDeals`: a repeated request with the same token returns the same task. */
  readonly token?: string
  /** For gateways with `offlineDeals`: most bytes of the pieces that are proposed. */
  readonly maxPieceBytes?: number | undefined
  readonly timeoutMs: number
  readonly signal: AbortSignal
}

/**
 * Asks the gateway to pack a bucket and to post a task for it. Throws S3Error (DealRejected and others) when the
 * gateway itself refused or was not reached, so that there certainly is no task, and OutcomeUnknown for every other
 * answer.
 */
export async function makeTask(gateway: Gateway, order: OfflineOrder): Promise<MadeTask> {
  const { bucket, prefix, terms, token, maxPieceBytes, timeoutMs, signal } = order
  const answer = await gateway.call({
    method: 'POST',
    endpoint: 'offlinedeals',
    bucket,
    access: 'read',
    body: {
      ...offlineBody(terms, prefix),
      ...(maxPieceBytes !== undefined && { Max_Piece_Bytes: String(maxPieceBytes) }),
    },
    ...(token !== undefined && { headers: { 'client-token': token } }),
    timeoutMs,
    signal,
  })
  const task = taskOf(answer)
  if (task) return task
  throw failureOfOrder(answer)
}

/** Public gateways report a refusal of the platform only within the inner envelope. */
function taskOf(answer: GatewayAnswer): MadeTask | undefined {
  const said = envelope.safeParse(answer.json).data
  const inner = madeTask.safeParse(said?.data).data?.deals
  if (answer.status !== 200 || said?.status.toLowerCase() !== 'success' || !inner) return undefined
  if (inner.status.toLowerCase() !== 'success') throw failureOfOrder(answer, inner.message)
  const { uuid, taskname, filename } = inner.data
  return { uuid, taskName: taskname, fileName: filename, message: inner.message }
}

/**
 * State of a task and of its deals; undefined when the gateway cannot say. For gateways with `offlineDeals`. Throws
 * what Gateway.call throws.
 */
export async function askTask(
  gateway: Gateway,
  bucket: string,
  uuid: string,
): Promise<{ readonly status: string; readonly deals: readonly TaskDeal[] } | undefined> {
  const answer = await gateway.call({
    method: 'GET',
    endpoint: 'offlinedeals',
    bucket,
    query: { uuid },
    access: 'read',
  })
  if (answer.status !== 200) return undefined
  const reported = taskState.safeParse(envelope.safeParse(answer.json).data?.data).data
  return reported && { status: reported.task_status, deals: reported.deals ?? [] }
}

/** The deal in the form of the gateway's other deals; what the platform does not say is ''. */
export function gatewayDealOf({ task }: Pick<TaskRecord, 'task'>, reported: TaskDeal, now: number): GatewayDeal {
  const { start_epoch: start, end_epoch: end } = reported
  return {
    ...{ filename: task?.fileName ?? '', walletAddress: '', verifiedDeal: '', fastRetrieval: 'true' },
    ...{ dataCid: reported.payload_cid, minerId: reported.miner_fid, price: '', dealCid: reported.deal_cid },
    duration: start === undefined || end === undefined ? '' : String(end - start),
    timeStamp: String(task?.made ?? now),
  }
}

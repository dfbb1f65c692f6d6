import type { GatewayDeal } from '../deal-wire.js'
import type { TaskDeal } from './offline-client.js'
import type { TaskRecord } from './task-records.js'

/** The deal in the form of the gateway's other deals; what the platform does not say is ''. */
export function gatewayDealOf({ task }: Pick<TaskRecord, 'task'>, told: TaskDeal, now: number): GatewayDeal {
  const { start_epoch: start, end_epoch: end } = told
  return {
    ...{ filename: task?.fileName ?? '', walletAddress: '', verifiedDeal: '', fastRetrieval: 'true' },
    ...{ dataCid: told.payload_cid, minerId: told.miner_fid, price: '', dealCid: told.deal_cid },
    duration: start === undefined || end === undefined ? '' : String(end - start),
    timeStamp: String(task?.made ?? now),
  }
}

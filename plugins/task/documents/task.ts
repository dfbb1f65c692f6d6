import { z } from 'zod'
import type { WireTask } from '../wire/records.js'
import { timeOf } from './time.js'

export const taskDocument = z.object({
  TaskId: z.number().int().nullable(),
  TaskUuid: z.string().optional(),
  TaskName: z.string(),
  Description: z.string(),
  Type: z.string().nullable().describe('regular or verified.'),
  Status: z.string(),
  IsPublic: z.boolean(),
  Tags: z.array(z.string()).meta({ element: 'Tag' }),
  MinPrice: z.string().nullable().describe('Decimal, as text: fil per GiB and epoch.'),
  MaxPrice: z.string().nullable().describe('Decimal, as text: fil per GiB and epoch.'),
  MinerId: z.string().nullable(),
  ExpireDays: z.number().int().nullable(),
  TaskFileName: z.string(),
  CreatedOn: z.string().describe('As the platform wrote it.'),
  CreatedAt: z.string().optional().describe('The same in RFC 3339.'),
  BidCount: z.number().int().optional(),
  DealCount: z.number().int().optional(),
  SuccessfulDealCount: z.number().int().optional(),
})
export type TaskDocument = z.output<typeof taskDocument>

/** @param uuid of the task, where the answer does not hold it */
export function taskOf(task: WireTask, uuid: string | null = task.uuid): TaskDocument {
  const created = timeOf(task.created_on)
  return {
    TaskId: task.task_id,
    ...(uuid !== null && { TaskUuid: uuid }),
    TaskName: task.task_name,
    Description: task.description,
    Type: task.type,
    Status: task.status,
    IsPublic: task.is_public,
    Tags: task.tags
      .split(',')
      .map((tag) => tag.trim())
      .filter((tag) => tag !== ''),
    MinPrice: task.min_price,
    MaxPrice: task.max_price,
    MinerId: task.miner_id,
    ExpireDays: task.expire_days,
    TaskFileName: task.task_file_name,
    CreatedOn: task.created_on,
    ...(created !== undefined && { CreatedAt: created }),
    ...(task.bid_count !== null && { BidCount: task.bid_count }),
    ...(task.deal_count !== null && { DealCount: task.deal_count }),
    ...(task.successful_deal_count !== null && { SuccessfulDealCount: task.successful_deal_count }),
  }
}

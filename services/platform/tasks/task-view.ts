import type { Document, documents } from '../../../common/service-documents.js'
import { formatFil } from '../../network/fil.js'
import type { Task } from './task.js'

/** A task in a list, as the interface writes it. */
export function taskSummary(task: Task): Document<typeof documents.task & typeof documents.taskCounts> {
  return {
    ...taskView(task),
    bid_count: task.bids,
    deal_count: task.deals,
    successful_deal_count: task.activeDeals,
  }
}

/** A task, as the interface writes it. */
export function taskView(task: Task): Document<typeof documents.task> {
  return {
    created_on: String(task.created),
    description: task.description,
    expire_days: task.expireDays,
    is_public: task.isPublic ? 1 : 0,
    max_price: task.maxPrice === null ? null : formatFil(task.maxPrice),
    min_price: task.minPrice === null ? null : formatFil(task.minPrice),
    miner_id: task.minerId,
    status: task.status,
    tags: task.tags.length === 0 ? null : task.tags.join(','),
    task_file_name: task.fileName,
    task_id: task.id,
    task_name: task.name,
    type: task.type,
    uuid: task.uuid,
  }
}

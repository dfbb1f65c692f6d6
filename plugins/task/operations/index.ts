import type { AnyOperation } from 'dealgate'
import type { TaskParts } from '../parts.js'
import { listBucketTasks } from './bucket-tasks.js'
import { createTask } from './create-task.js'
import { listProviderDeals, updateMyDeal, updateMyProvider, updateTaskDealStatus } from './my-provider.js'
import { getProvider, listProviders } from './providers.js'
import { createApiKey, createJwt, createPlatformSession } from './sessions.js'
import { getPriceStatistics } from './statistics.js'
import { getTask, listMyProviderTasks, listMyTasks, listPublicTasks } from './tasks.js'

/** The operations of this plugin. */
export function taskOperations(parts: TaskParts): readonly AnyOperation[] {
  return [
    createPlatformSession(parts),
    createApiKey(parts),
    createJwt(parts),
    listProviders(parts),
    getProvider(parts),
    updateMyProvider(parts),
    createTask(parts),
    listBucketTasks(parts),
    listPublicTasks(parts),
    listMyTasks(parts),
    getTask(parts),
    listMyProviderTasks(parts),
    listProviderDeals(parts),
    updateMyDeal(parts, 'POST'),
    updateMyDeal(parts, 'PUT'),
    updateTaskDealStatus(parts, 'POST'),
    updateTaskDealStatus(parts, 'PUT'),
    getPriceStatistics(parts),
  ]
}

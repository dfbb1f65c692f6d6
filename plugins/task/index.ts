import { type AnyOperation, definePlugin } from 'dealgate'
import { createTasks } from './create/job.js'
import { taskExpansion } from './expand.js'
import { taskGauges } from './gauges.js'
import { offersOf } from './offers.js'
import { listBucketTasks } from './operations/bucket-tasks.js'
import { listProviderDeals, updateMyDeal, updateMyProvider, updateTaskDealStatus } from './operations/my-provider.js'
import { getPriceStatistics, getProvider, listProviders } from './operations/providers.js'
import { createApiKey, createJwt, createPlatformSession } from './operations/sessions.js'
import { createTask, getTask, listMyProviderTasks, listMyTasks, listPublicTasks } from './operations/tasks.js'
import { taskOptions } from './options.js'
import { TaskParts } from './parts.js'

export default definePlugin({
  name: 'task',
  summary: 'The task platform: storage providers, tasks with their bids and deals, and the log-ins of callers to it.',
  options: taskOptions,
  create(options, host) {
    const parts = new TaskParts(options, host)
    return {
      operations: taskOperations(parts),
      jobs: [createTasks(parts)],
      gauges: taskGauges(parts),
      offers: offersOf(parts),
      expansions: [taskExpansion(parts)],
      stop: () => parts.close(),
    }
  },
})

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

// A bucket's deal configuration limits what every plugin spends for it: this brings the type of that setting.

import { countByState, spendGauges } from 'dealgate/paid'
import { type AnyOperation, definePlugin, type PluginGauge } from 'dealgate/plugin'
import type {} from 'dealgate/plugins/deal'
import { acceptBid, acceptBids, quoteBid } from './create/accept.js'
import { createTasks } from './create/job.js'
import { TaskDeps } from './deps.js'
import { taskExpansion } from './expand.js'
import { offersOf } from './offers.js'
import { listBucketTasks } from './operations/bucket-tasks.js'
import { listProviderDeals, updateMyDeal, updateMyProvider, updateTaskDealStatus } from './operations/my-provider.js'
import { getPriceStatistics, getProvider, listProviders } from './operations/providers.js'
import { createApiKey, createJwt, createPlatformSession, signInUser } from './operations/sessions.js'
import { createTask, getTask, listMyProviderTasks, listMyTasks, listPublicTasks } from './operations/tasks.js'
import { taskOptions } from './options.js'

export default definePlugin({
  name: 'task',
  summary: 'The task platform: storage providers, tasks with their bids and deals, and the log-ins of callers to it.',
  options: taskOptions,
  create(options, host) {
    const deps = new TaskDeps(options, host)
    return {
      operations: taskOperations(deps),
      jobs: [createTasks(deps), acceptBids(deps)],
      gauges: taskGauges(deps),
      offers: offersOf(deps),
      expansions: [taskExpansion(deps)],
      stop: () => deps.close(),
    }
  },
})

function taskOperations(deps: TaskDeps): readonly AnyOperation[] {
  return [
    createPlatformSession(deps),
    signInUser(deps),
    createApiKey(deps),
    createJwt(deps),
    listProviders(deps),
    getProvider(deps),
    updateMyProvider(deps),
    createTask(deps),
    acceptBid(deps),
    quoteBid(deps),
    listBucketTasks(deps),
    listPublicTasks(deps),
    listMyTasks(deps),
    getTask(deps),
    listMyProviderTasks(deps),
    listProviderDeals(deps),
    updateMyDeal(deps, 'POST'),
    updateMyDeal(deps, 'PUT'),
    updateTaskDealStatus(deps, 'POST'),
    updateTaskDealStatus(deps, 'PUT'),
    getPriceStatistics(deps),
  ]
}

/** Tasks that were created through this server, and what they may cost today. */
function taskGauges(deps: TaskDeps): readonly PluginGauge[] {
  return [
    {
      name: 'tasks',
      help: 'Tasks that were created through this server: `Created` ones have a UUID, `Unnamed` ones not yet.',
      read: () => countByState(deps.made.all(), ({ uuid }) => (uuid === undefined ? 'Unnamed' : 'Created')),
    },
    ...spendGauges(deps.ledger, deps.options.maxSpendPerDay),
  ]
}

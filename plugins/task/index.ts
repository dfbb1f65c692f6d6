import { definePlugin } from 'dealgate'
import { createTasks } from './create/job.js'
import { taskExpansion } from './expand.js'
import { taskGauges } from './gauges.js'
import { offersOf } from './offers.js'
import { taskOperations } from './operations/index.js'
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

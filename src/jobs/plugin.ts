import type { Plugin } from '../registry/plugin.js'
import { cancelJob, resolveJob, retryJob } from './operations/change-jobs.js'
import { getJob, getJobLog, listJobs } from './operations/read-jobs.js'

/** What clients see of jobs; the jobs themselves are the server's (open-jobs.ts). */
export const jobsPlugin: Plugin = Object.freeze({
  name: 'jobs',
  operations: [listJobs, getJob, getJobLog, cancelJob, retryJob, resolveJob],
})

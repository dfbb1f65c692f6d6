import type { Plugin } from '../forms/plugin.js'
import { cancelJob, resolveJob, retryJob } from './change-jobs.js'
import { getJob, getJobLog, listJobs } from './read-jobs.js'

/** The calls by which clients manage jobs. The server itself owns the jobs (open-jobs.ts). */
export const jobsPlugin: Plugin = Object.freeze({
  name: 'jobs',
  operations: [listJobs, getJob, getJobLog, cancelJob, retryJob, resolveJob],
})

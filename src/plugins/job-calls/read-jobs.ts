import { z } from 'zod'
import { PageOf } from '../calls/declare/call.js'
import { defineCall } from '../calls/define-call.js'
import { documentOf, jobDocument, jobStatuses } from '../jobs/document.js'
import { jobOf, seenBy } from './own-job.js'

export const SOURCE = 'docs/extensions.md#jobs'
export const ONE = '/-/jobs/v1/{JobId}'

/** Number of jobs, newest first, that the virtual bucket lists. Older ones are readable but not listed. */
const MAX_MEMBERS = 1000

export const listJobs = defineCall({
  name: 'ListJobs',
  source: SOURCE,
  summary: 'Lists jobs, newest first.',
  access: 'signed',
  on: { method: 'GET', resource: 'service', path: '/-/jobs/v1' },
  query: z.strictObject({
    status: z.enum(jobStatuses).optional().describe('Lists jobs in this state only.'),
    plugin: z.string().max(32).optional().describe('Lists jobs of this plugin only.'),
  }),
  result: z.object({ Jobs: z.array(jobDocument).meta({ element: 'Job' }) }),
  pages: 'Jobs',
  ownRules: true,
  async answer({ query, page }, context) {
    const found = await context.jobs.list({
      ...query,
      accessKeyId: seenBy(context) || undefined,
      before: page.from,
      limit: page.limit + 1,
    })
    const jobs = found.slice(0, page.limit)
    return { Jobs: new PageOf(jobs.map(documentOf), found.length > page.limit ? jobs.at(-1)?.id : undefined) }
  },
})

export const getJob = defineCall({
  name: 'GetJob',
  source: SOURCE,
  summary: 'Returns the state, progress and outcome of a job.',
  access: 'signed',
  on: { method: 'GET', resource: 'service', path: ONE },
  result: jobDocument,
  root: 'Job',
  ownRules: true,
  async *members(context) {
    const newest = await context.jobs.list({ accessKeyId: seenBy(context) || undefined, limit: MAX_MEMBERS })
    for (const { id } of newest) yield { JobId: id }
  },
  answer: async ({ request }, context) => documentOf(await jobOf(request.params.JobId ?? '', context)),
})

export const getJobLog = defineCall({
  name: 'GetJobLog',
  source: SOURCE,
  summary: 'Returns the last lines of the log of a job.',
  access: 'signed',
  on: { method: 'GET', resource: 'service', path: `${ONE}/log` },
  result: z.object({
    JobId: z.string(),
    Lines: z.array(z.object({ Time: z.string(), Text: z.string() })).meta({ element: 'Line' }),
  }),
  ownRules: true,
  async answer({ request }, context) {
    const { id } = await jobOf(request.params.JobId ?? '', context)
    const lines = await context.jobs.log(id)
    return {
      JobId: id,
      Lines: lines.map(({ time, line }) => ({ Time: new Date(time).toISOString(), Text: line })),
    }
  },
})

import { z } from 'zod'
import { codes, type S3Code } from '../../../common/errors/codes.js'
import type { Context } from '../../api/context.js'
import type { Job } from '../../api/jobs.js'
import type { Plugin } from '../../api/plugin.js'
import type { S3Request } from '../../api/request.js'
import { PageOf } from '../calls/call.js'
import { defineCall } from '../calls/define-call.js'
import { signatureOf } from './caller-jobs.js'
import { documentOf, jobDocument, jobStatuses } from './document.js'
import { requireAgain } from './require-again.js'

const SOURCE = 'docs/extensions.md#jobs'
const ONE = '/-/jobs/v1/{JobId}'

/** Number of jobs, newest first, that the virtual bucket lists. Older ones are readable but not listed. */
const MAX_MEMBERS = 1000

const listJobs = defineCall({
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
    const found = await context.callerJobs.list({ ...query, before: page.from, limit: page.limit + 1 })
    const jobs = found.slice(0, page.limit)
    return { Jobs: new PageOf(jobs.map(documentOf), found.length > page.limit ? jobs.at(-1)?.id : undefined) }
  },
})

const getJob = defineCall({
  name: 'GetJob',
  source: SOURCE,
  summary: 'Returns the state, progress and outcome of a job.',
  access: 'signed',
  on: { method: 'GET', resource: 'service', path: ONE },
  result: jobDocument,
  root: 'Job',
  ownRules: true,
  async *members(context) {
    const newest = await context.callerJobs.list({ limit: MAX_MEMBERS })
    for (const { id } of newest) yield { JobId: id }
  },
  answer: async ({ request }, context) => documentOf(await jobOf(request, context)),
})

const getJobLog = defineCall({
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
    const { id } = await jobOf(request, context)
    const lines = await context.jobs.log(id)
    return {
      JobId: id,
      Lines: lines.map(({ time, line }) => ({ Time: new Date(time).toISOString(), Text: line })),
    }
  },
})

const shared = {
  source: SOURCE,
  result: jobDocument,
  root: 'Job',
  ownRules: true,
  admit: async (request: S3Request<'service'>, context: Context) => void (await jobOf(request, context)),
} as const

const cancelJob = defineCall({
  ...shared,
  name: 'CancelJob',
  summary: 'Cancels a job that has not sent anything irrevocable.',
  access: 'signed',
  on: { method: 'POST', resource: 'service', path: `${ONE}/cancel` },
  async answer({ request }, context) {
    const { id } = await jobOf(request, context)
    return documentOf(await context.jobs.cancel(id, signatureOf(context)))
  },
})

const retryJob = defineCall({
  ...shared,
  admit: async (request, context) => void (await mayBegin(request, context)),
  name: 'RetryJob',
  summary: 'Runs a failed or cancelled job again, or an Unknown one that the caller knows to have had no effect.',
  access: 'signed',
  on: { method: 'POST', resource: 'service', path: `${ONE}/retry` },
  async answer({ request }, context) {
    const { id } = await mayBegin(request, context)
    return documentOf(await context.jobs.retry(id, signatureOf(context)))
  },
})

const errorCodes = Object.keys(codes) as [S3Code, ...S3Code[]]

const resolveJob = defineCall({
  ...shared,
  admit: async (request, context) => void (await mayBegin(request, context)),
  name: 'ResolveJob',
  summary: 'Sets the outcome of a job that is Unknown.',
  access: 'signed',
  on: { method: 'POST', resource: 'service', path: `${ONE}/resolve` },
  body: z.discriminatedUnion('Status', [
    z.strictObject({
      Status: z.literal('Complete'),
      Result: z.record(z.string(), z.unknown()).optional().describe('The result that the call would have returned.'),
    }),
    z.strictObject({
      Status: z.literal('Failed'),
      FailureCode: z.enum(errorCodes, { error: 'must be the code of an error' }),
      FailureReason: z.string().max(1000).optional(),
    }),
  ]),
  async answer({ request, body }, context) {
    const { id } = await mayBegin(request, context)
    const signature = signatureOf(context)
    if (body.Status === 'Complete')
      return documentOf(await context.jobs.resolve(id, { result: body.Result ?? {} }, signature))
    const { FailureCode: code, FailureReason: message = codes[code].message } = body
    return documentOf(await context.jobs.resolve(id, { failure: { code, message } }, signature))
  },
})

/** Throws NoSuchJob, also for a job that the caller may not see. */
function jobOf({ params }: Pick<S3Request, 'params'>, { callerJobs }: Context): Promise<Job> {
  return callerJobs.get(params.JobId ?? '')
}

/** Throws AccessDenied unless the caller may start such a job: others may neither run it again nor set its outcome. */
async function mayBegin(request: S3Request<'service'>, context: Context): Promise<Job> {
  const job = await jobOf(request, context)
  await requireAgain(job, request, context)
  return job
}

/** The calls by which clients manage jobs. The server itself owns the jobs (open-jobs.ts). */
export const jobsPlugin: Plugin = Object.freeze({
  name: 'jobs',
  operations: [listJobs, getJob, getJobLog, cancelJob, retryJob, resolveJob],
})

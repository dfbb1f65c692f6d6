import { z } from 'zod'
import type { Context } from '../../context.js'
import { codes, type S3Code } from '../../errors/codes.js'
import { defineCall } from '../../extension/define-call.js'
import { documentOf, jobDocument } from '../document.js'
import type { Job } from '../job.js'
import { jobOf } from './own-job.js'
import { ONE, SOURCE } from './read-jobs.js'

const shared = { source: SOURCE, result: jobDocument, root: 'Job', ownRules: true } as const

export const cancelJob = defineCall({
  ...shared,
  name: 'CancelJob',
  summary: 'Gives a job up that has not sent anything that cannot be taken back.',
  on: { method: 'POST', resource: 'service', path: `${ONE}/cancel` },
  async answer({ request }, context) {
    const { id } = await jobOf(request.params.JobId ?? '', context)
    return documentOf(await context.jobs.cancel(id))
  },
})

export const retryJob = defineCall({
  ...shared,
  name: 'RetryJob',
  summary:
    'Runs a job again that has failed or was cancelled, or one that is Unknown and, as the caller vouches for, did nothing.',
  on: { method: 'POST', resource: 'service', path: `${ONE}/retry` },
  async answer({ request }, context) {
    const { id } = await mayBegin(request.params.JobId ?? '', context)
    return documentOf(await context.jobs.retry(id))
  },
})

const errorCodes = Object.keys(codes) as [S3Code, ...S3Code[]]

export const resolveJob = defineCall({
  ...shared,
  name: 'ResolveJob',
  summary: 'Says what became of a job that is Unknown.',
  on: { method: 'POST', resource: 'service', path: `${ONE}/resolve` },
  body: z.discriminatedUnion('Status', [
    z.strictObject({
      Status: z.literal('Complete'),
      Result: z.record(z.string(), z.unknown()).optional().describe('What the call would have answered.'),
    }),
    z.strictObject({
      Status: z.literal('Failed'),
      FailureCode: z.enum(errorCodes, { error: 'must be the code of an error' }),
      FailureReason: z.string().max(1000).optional(),
    }),
  ]),
  async answer({ request, body }, context) {
    const { id } = await mayBegin(request.params.JobId ?? '', context)
    if (body.Status === 'Complete') return documentOf(await context.jobs.resolve(id, { result: body.Result ?? {} }))
    const { FailureCode: code, FailureReason: message = codes[code].message } = body
    return documentOf(await context.jobs.resolve(id, { failure: { code, message } }))
  },
})

/** Who decides what a job did, or that it does it again, could have begun it himself. */
async function mayBegin(id: string, context: Context): Promise<Job> {
  const job = await jobOf(id, context)
  context.requireAction(job.operation)
  return job
}

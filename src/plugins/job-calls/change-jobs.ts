import { z } from 'zod'
import type { Place } from '../../access/door/door.js'
import { codes, type S3Code } from '../../common/errors/codes.js'
import type { S3Request } from '../../request/s3-request.js'
import type { Context } from '../../server/context.js'
import { hashOf } from '../calls/declare/client-token.js'
import { defineCall } from '../calls/define-call.js'
import { documentOf, jobDocument } from '../jobs/document.js'
import type { Job } from '../jobs/job.js'
import { jobOf } from './own-job.js'
import { ONE, SOURCE } from './read-jobs.js'

const shared = {
  source: SOURCE,
  result: jobDocument,
  root: 'Job',
  ownRules: true,
  admit: async ({ params }: S3Request<'service'>, context: Context) => void (await jobOf(params.JobId ?? '', context)),
} as const

export const cancelJob = defineCall({
  ...shared,
  name: 'CancelJob',
  summary: 'Cancels a job that has not sent anything irrevocable.',
  access: 'signed',
  on: { method: 'POST', resource: 'service', path: `${ONE}/cancel` },
  async answer({ request }, context) {
    const { id } = await jobOf(request.params.JobId ?? '', context)
    return documentOf(await context.jobs.cancel(id, signatureOf(context)))
  },
})

export const retryJob = defineCall({
  ...shared,
  admit: async ({ params }, context) => void (await mayBegin(params.JobId ?? '', context)),
  name: 'RetryJob',
  summary: 'Runs a failed or cancelled job again, or an Unknown one that the caller knows to have had no effect.',
  access: 'signed',
  on: { method: 'POST', resource: 'service', path: `${ONE}/retry` },
  async answer({ request }, context) {
    const { id } = await mayBegin(request.params.JobId ?? '', context)
    return documentOf(await context.jobs.retry(id, signatureOf(context)))
  },
})

const errorCodes = Object.keys(codes) as [S3Code, ...S3Code[]]

export const resolveJob = defineCall({
  ...shared,
  admit: async ({ params }, context) => void (await mayBegin(params.JobId ?? '', context)),
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
    const { id } = await mayBegin(request.params.JobId ?? '', context)
    const signature = signatureOf(context)
    if (body.Status === 'Complete')
      return documentOf(await context.jobs.resolve(id, { result: body.Result ?? {} }, signature))
    const { FailureCode: code, FailureReason: message = codes[code].message } = body
    return documentOf(await context.jobs.resolve(id, { failure: { code, message } }, signature))
  },
})

/** Identifies the request by its signature, so that a captured one that is sent again counts once. */
function signatureOf({ caller }: Context): string | undefined {
  return caller?.proof && hashOf(caller.proof.signature)
}

/** Only a caller that may start such a job may run it again or set its outcome. */
async function mayBegin(id: string, context: Context): Promise<Job> {
  const job = await jobOf(id, context)
  await context.checks.requireAction(job.operation, placeOf(job))
  return job
}

function placeOf({ resource }: Job): Place {
  const [, bucket, key] = /^\/([^/]+)(?:\/(.+))?$/s.exec(resource) ?? []
  return { bucket, key }
}

import { codes, isCode } from '../../../common/errors/codes.js'
import { S3Error } from '../../../common/errors/s3-error.js'
import type { Context } from '../../api/context.js'
import type { Job, JobFailure, NewJob } from '../../api/jobs.js'
import type { Document } from '../../api/operation.js'
import type { Reply, ReplyHeaders, Resource, S3Request } from '../../api/request.js'
import { signatureOf, signerOf } from '../jobs/caller-jobs.js'
import { documentOf, jobDocument } from '../jobs/document.js'
import { hasEnded } from '../jobs/record.js'
import { requireAgain } from '../jobs/require-again.js'
import { documentReply, factsOfContent, noRaw, passContent, versionHeader } from './answer-now.js'
import { type JobCall, jobAddress } from './call.js'
import { expansionsOf } from './expand.js'
import { formatOf } from './format.js'
import { type CallInput, hashOf, type PreparedCall, readClientToken, readPrefer } from './prepare.js'
import { shapeOf } from './shape.js'

type Call = JobCall<Resource, Document, Document, Document>

/** A repeated request without a token counts as a mistake within this time, ms. */
const REPEAT_MS = 60_000

const jobForm = {
  root: 'Job',
  plugin: 'jobs',
  get shape() {
    return shapeOf(jobDocument, 'output')
  },
} as const

/** Creates a job for a call, once per token, and answers with its result if the job ends within the time to wait. */
export async function answerJob(
  call: Call,
  prepared: PreparedCall,
  asked: CallInput,
  request: S3Request,
  context: Context,
): Promise<Reply> {
  const format = formatOf(request)
  const preference = readPrefer(request.headers.prefer)
  expansionsOf(call, asked.frame.expand, context)
  if (asked.frame.raw) throw noRaw()
  const { job, ordered } = await jobFor(call, asked, request, context)
    .then(async ({ job: { id }, ordered }) => ({
      job: await context.jobs.wait(id, preference.waitMs, request.signal),
      ordered,
    }))
    .catch(async (error: unknown) => {
      // The record existed a moment ago. A store that has lost it has lost more, so that error takes precedence.
      if (!(error instanceof S3Error) || error.code !== 'NoSuchJob') throw error
      await context.state.requireIntact()
      throw call.pass ? failedBefore() : error
    })
  const headers = {
    ...versionHeader(request.plugin),
    ...ordered,
    'x-dealgate-job-id': job.id,
    'preference-applied': preference.applied,
  }
  if (job.status === 'Complete') {
    const { shape, root } = prepared
    return documentReply({ format, root, plugin: request.plugin, shape }, (job.result ?? {}) as Document, headers)
  }
  if (hasEnded(job.status)) throw failureOf(job)
  const location = jobAddress(request, job.id)
  return documentReply({ format, ...jobForm }, documentOf(job), { ...headers, location }, 202)
}

interface Created {
  readonly job: Job
  readonly ordered?: ReplyHeaders | undefined
}

async function jobFor(call: Call, asked: CallInput, request: S3Request, context: Context): Promise<Created> {
  const { identity, proof } = signerOf(context)
  const { accessKeyId } = identity
  const { body, query, force } = asked
  const { Force: _, ...terms } = body
  const { plugin, bucket = null, key = null, params } = request
  const content = call.pass && factsOfContent(request)
  const requestHash = hashOf(plugin, call.name, bucket, key, params, query, terms, ...(content ? [content] : []))
  const token = readClientToken(request, proof)
  // A repeated request gets the job of the first one, even if its bucket or object has changed since.
  const known = token === undefined ? undefined : await context.jobs.find({ accessKeyId, token, requestHash })
  // The content of a call that passes one on is not kept.
  if (known) return { job: call.pass ? known : await runAgain(known, request, context) }
  if (request.bucket !== undefined && call.access === 'owner') await context.checks.requireOwner(request.bucket)
  const page = { limit: asked.frame.maxItems, from: undefined }
  const { resource, input, headers: ordered } = await call.order({ request, body, query, page }, context)
  const job: NewJob<unknown> = {
    kind: call.job,
    resource,
    input,
    accessKeyId,
    requestHash,
    ...(token !== undefined && { token }),
    ...(call.spends && { refuseRepeatsWithin: force || content?.digests.length === 0 ? 0 : REPEAT_MS }),
    ...(call.spends && proof && { signature: signatureOf(context) }),
  }
  if (!call.pass) return { job: await context.jobs.create(job), ordered }
  const pass = (held: Job) => call.pass?.({ request, body, query, page }, held, context)
  return { job: await passContent(job, context, pass), ordered }
}

/**
 * Runs a failed job again if the cause of the failure may have passed. SDKs retry with the same token and expect that.
 */
async function runAgain(known: Job, request: S3Request, context: Context): Promise<Job> {
  const { jobs } = context
  if (known.status !== 'Failed' || !known.failure || !mayPass(known.failure)) return known
  await requireAgain(known, request, context)
  try {
    return await jobs.retry(known.id)
  } catch (error) {
    // Another request has restarted the job already.
    if (error instanceof S3Error && error.code === 'InvalidRequest') return (await jobs.get(known.id)) ?? known
    throw error
  }
}

function mayPass({ code, status = 500 }: JobFailure): boolean {
  const known = isCode(code) ? codes[code].status : status
  return known >= 500 && known !== 501
}

/** The job of a call that passes a content on is dropped when that fails. */
function failedBefore(): S3Error {
  return new S3Error('OperationAborted', {
    message: 'The request that this one repeats has failed meanwhile. Send it again.',
  })
}

function failureOf({ id, failure }: Job): S3Error {
  const headers = { 'x-dealgate-job-id': id }
  if (!failure) {
    return new S3Error('OperationAborted', { message: 'The job was cancelled.', fields: { JobId: id }, headers })
  }
  const { code, message, status = 500 } = failure
  const options = { message, fields: { ...failure.fields, JobId: id }, headers }
  return isCode(code) ? new S3Error(code, options) : new S3Error(code, { ...options, status })
}

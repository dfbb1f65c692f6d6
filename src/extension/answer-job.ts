import type { Context } from '../context.js'
import { codes, isCode } from '../errors/codes.js'
import { S3Error } from '../errors/s3-error.js'
import { documentOf, jobDocument } from '../jobs/document.js'
import type { Job, JobFailure } from '../jobs/job.js'
import { hasEnded } from '../jobs/record.js'
import type { Resource, S3Request } from '../request/s3-request.js'
import type { Reply } from '../response/reply.js'
import type { Document, JobCall } from './call.js'
import { hashOf, readClientToken } from './client-token.js'
import { documentReply, versionHeader } from './document-reply.js'
import { formatOf } from './format.js'
import { invalidArgument } from './names.js'
import { readPrefer } from './prefer.js'
import type { Asked, PreparedCall } from './prepare.js'
import { jobAddress } from './service-address.js'
import { shapeOf } from './shape.js'

type Call = JobCall<Resource, Document, Document, Document>

/** The same without a token is taken for a mistake so long, ms. */
const REPEAT_MS = 60_000

const jobForm = { root: 'Job', plugin: 'jobs', shape: shapeOf(jobDocument, 'output') } as const

/** Makes a call a job, once for its token, and answers its result if that comes soon enough. */
export async function answerJob(
  call: Call,
  prepared: PreparedCall,
  asked: Asked,
  request: S3Request,
  context: Context,
): Promise<Reply> {
  const format = formatOf(request)
  const preference = readPrefer(request.headers.prefer)
  if (asked.frame.raw) throw invalidArgument('raw', 'is no parameter of this call, which has nothing but its result')
  const { id } = await jobFor(call, asked, request, context)
  const job = await context.jobs.wait(id, preference.waitMs, request.signal)
  const headers = {
    ...versionHeader(request.plugin),
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

async function jobFor(call: Call, asked: Asked, request: S3Request, context: Context): Promise<Job> {
  const { accessKeyId } = signer(context)
  const { body, query, force } = asked
  const { Force: _, ...terms } = body
  const { plugin, bucket = null, key = null, params } = request
  const requestHash = hashOf(plugin, call.name, bucket, key, params, query, terms)
  const token = readClientToken(request.headers)
  // A repeated request gets what the first one got, whatever has become of what it is about.
  const known = token === undefined ? undefined : await context.jobs.find({ accessKeyId, token, requestHash })
  if (known) return runAgain(known, context)
  const page = { limit: asked.frame.maxItems, from: undefined }
  const { resource, input } = await call.order({ request, body, query, page }, context)
  return context.jobs.create({
    kind: call.job,
    resource,
    input,
    accessKeyId,
    requestHash,
    ...(token !== undefined && { token }),
    ...(call.spends && { refuseRepeatsWithin: force ? 0 : REPEAT_MS }),
  })
}

/** What was kept from being done by something that may be over by now is done for whoever asks again, as an SDK does with the same token. */
async function runAgain(known: Job, { jobs }: Context): Promise<Job> {
  if (known.status !== 'Failed' || !known.failure || !mayPass(known.failure)) return known
  try {
    return await jobs.retry(known.id)
  } catch (error) {
    // Somebody else was faster.
    if (error instanceof S3Error && error.code === 'InvalidRequest') return (await jobs.get(known.id)) ?? known
    throw error
  }
}

function mayPass({ code, status = 500 }: JobFailure): boolean {
  const known = isCode(code) ? codes[code].status : status
  return known >= 500 && known !== 501
}

function signer({ caller }: Context) {
  if (!caller) throw new S3Error('AccessDenied', { message: 'Only a signed request can make a job.' })
  return caller.identity
}

/** What a job failed with, as if it had just happened. */
function failureOf({ id, failure }: Job): S3Error {
  const headers = { 'x-dealgate-job-id': id }
  if (!failure) {
    return new S3Error('OperationAborted', { message: 'The job was cancelled.', fields: { JobId: id }, headers })
  }
  const { code, message, status = 500 } = failure
  const options = { message, fields: { ...failure.fields, JobId: id }, headers }
  return isCode(code) ? new S3Error(code, options) : new S3Error(code, { ...options, status })
}

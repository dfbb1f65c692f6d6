import { S3Error } from '../../../common/errors/s3-error.js'
import type { CallerJobs, CallerOrder } from '../../api/caller-jobs.js'
import type { Context, Jobs } from '../../api/context.js'
import type { Caller } from '../../api/identity.js'
import type { Job } from '../../api/jobs.js'
import type { S3Request } from '../../api/request.js'
import { hashOf, readClientToken } from '../calls/prepare.js'
import { narrowed, sessionOf } from './narrow.js'
import { noSuchJob } from './record.js'

type Asking = Pick<Context, 'caller' | 'jobs'>

/** Jobs as the caller of a context sees and orders them. */
export function callerJobs(context: Asking): CallerJobs {
  const { caller, jobs } = context
  return {
    async get<Input, Result>(id: string, kind?: string) {
      const job = await jobs.get(id)
      const whose = seenBy(context)
      const seen = job && (whose === '' || job.accessKeyId === whose)
      if (!seen || (kind !== undefined && job.operation !== kind)) throw noSuchJob(id)
      return job as Job<Input, Result>
    },
    list: (query) => jobs.list({ ...query, accessKeyId: seenBy(context) || undefined }),
    order: (request, order) => orderOnce(context, request, order),
    session: (by) => narrowed(sessionOf(caller), by),
  }
}

/** What a session with a policy orders keeps that policy, and so does what it has run again. */
export function jobsOf(jobs: Jobs, caller: Caller | undefined): Jobs {
  const session = sessionOf(caller)
  if (!session) return jobs
  return {
    ...jobs,
    create: (asked) => jobs.create({ ...asked, session }),
    retry: (id, signature) => jobs.retry(id, signature, session),
  }
}

/** The caller of a request that creates a job. Throws AccessDenied. */
export function signerOf({ caller }: Pick<Context, 'caller'>): NonNullable<Context['caller']> {
  if (!caller) throw new S3Error('AccessDenied', { message: 'Only a signed request can create a job.' })
  return caller
}

/** Identifies the request by its signature, so that a captured one that is sent again counts once. */
export function signatureOf({ caller }: Pick<Context, 'caller'>): string | undefined {
  return caller?.proof && hashOf(caller.proof.signature)
}

/**
 * The access key id whose jobs the caller may see; '' for all. An identity with rights or a gateway account of its own
 * sees only its own jobs, as it sees only its own keys.
 */
function seenBy({ caller }: Pick<Context, 'caller'>): string {
  const identity = caller?.identity
  const limited = identity?.rights || identity?.policies || identity?.session?.policy || identity?.account
  return identity && limited ? identity.accessKeyId : ''
}

async function orderOnce<Input>(
  context: Asking,
  request: S3Request,
  {
    kind,
    resource,
    input,
    terms = input,
    token = readClientToken(request, context.caller?.proof),
    admit,
  }: CallerOrder<Input>,
): Promise<Job<Input>> {
  const { accessKeyId } = signerOf(context).identity
  const asked = { accessKeyId, requestHash: hashOf(request.plugin, terms) }
  // A repeated request gets the job of the first one, even if its buckets have changed since.
  const known = token === undefined ? undefined : await context.jobs.find({ ...asked, token })
  if (known) return known as Job<Input>
  await admit?.()
  const once = token === undefined ? { signature: signatureOf(context) } : { token }
  return context.jobs.create({ kind, resource, input, ...asked, ...once })
}

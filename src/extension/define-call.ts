import type { Context } from '../context.js'
import type { Operation } from '../registry/operation.js'
import type { Resource, S3Request } from '../request/s3-request.js'
import { answerJob } from './answer-job.js'
import { answerNow } from './answer-now.js'
import { authorize } from './authorize.js'
import type { AnsweredCall, CallFacts, Document, JobCall } from './call.js'
import { MAX_WAIT_MS } from './prefer.js'
import { type PreparedCall, prepare } from './prepare.js'
import { FRAME_PARAMETERS } from './read-query.js'

/** For the longest wait and what comes before it. */
const JOB_DEADLINE_MS = MAX_WAIT_MS + 30_000

/** A call of any types. The table hands it requests of its own resource only, and `prepare` documents of its own schemas, which the union of types cannot say. */
type AnyCall = AnsweredCall<Resource, Document, Document, Document> | JobCall<Resource, Document, Document, Document>

/**
 * An operation in the common form of extensions: documents in JSON and XML, pages, client tokens, jobs. What a plugin declares here is what clients, tables and
 * descriptions get to see.
 * @throws Error for a declaration that contradicts itself
 */
export function defineCall<
  R extends Resource,
  Result extends Document,
  Body extends Document = Record<string, never>,
  Query extends Document = Record<string, never>,
>(declared: AnsweredCall<R, Body, Query, Result> | JobCall<R, Body, Query, Result>): Operation<R> {
  const call = declared as unknown as AnyCall
  checkDeclaration(call)
  checkSelector(call)
  const prepared = prepare(call)
  const { name, source, on } = declared
  return {
    name,
    source,
    on: {
      method: on.method,
      resource: on.resource,
      ...(on.path !== undefined && { path: on.path }),
      ...(on.subresource !== undefined && { query: [on.subresource] }),
      params: [...FRAME_PARAMETERS, ...prepared.parameters],
    },
    call: call as CallFacts,
    // It may wait for its job.
    ...('job' in call && { deadlineMs: JOB_DEADLINE_MS }),
    ...(call.deadlineMs !== undefined && { deadlineMs: call.deadlineMs }),
    run: (request, context) => run(call, prepared, request, context),
  }
}

async function run(call: AnyCall, prepared: PreparedCall, request: S3Request, context: Context) {
  authorize(call, request, context)
  const asked = await prepared.read(request)
  return 'job' in call
    ? answerJob(call, prepared, asked, request, context)
    : answerNow(call, prepared, asked, request, context)
}

/** What a plugin in JavaScript may have forgotten. */
function checkDeclaration(call: AnyCall): void {
  const { name, on, result } = call as Partial<AnyCall>
  const refuse = (problem: string) => {
    throw new Error(`the call ${name ?? 'without a name'} ${problem}`)
  }
  if (typeof on !== 'object' || on === null) refuse('must say in `on` which requests it answers')
  if (result?._zod === undefined) refuse('must have a `result`, a schema of zod 4: take z from dealgate')
  const does = 'job' in call ? call.order : (call as Partial<typeof call>).answer
  if (typeof does !== 'function') refuse("must have answer(), or 'job' and order()")
}

/** Where calls may be: docs say why a PUT or DELETE with a sub-resource is none of ours. */
function checkSelector({ name, on, ...call }: AnyCall): void {
  const { resource, path = '', subresource = '', method } = on
  const fits =
    resource === 'service'
      ? /^\/-\/[a-z][a-z0-9-]*(?:\/|$)/.test(path) && subresource === ''
      : /^x-[a-z][a-z0-9-]*$/.test(subresource) && path === '' && method !== 'PUT'
  if (!fits) {
    throw new Error(
      `${name}: a call is at a path /-/<plugin>/v1/..., or at a sub-resource x-<plugin>[-...] by GET or POST`,
    )
  }
  if ('job' in call && method === 'GET') throw new Error(`${name}: what becomes a job is no GET`)
}

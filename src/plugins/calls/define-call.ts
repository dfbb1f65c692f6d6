import type { Context } from '../../api/context.js'
import type { CallFacts, Document, Operation } from '../../api/operation.js'
import type { Resource, S3Request } from '../../api/request.js'
import { answerJob } from './answer-job.js'
import { answerNow } from './answer-now.js'
import type { AnsweredCall, JobCall } from './call.js'
import { authorize, checkShapes, MAX_WAIT_MS, type PreparedCall, prepare, requireSignedBody } from './prepare.js'
import { FRAME_PARAMETERS } from './read-body.js'

/** Deadline of a call with a job: the longest wait plus the work before it, ms. */
const JOB_DEADLINE_MS = MAX_WAIT_MS + 30_000

/**
 * A call of any types. The table passes it only requests of its own resource, and `prepare` only documents of its own
 * schemas; the union cannot express that.
 */
type AnyCall = AnsweredCall<Resource, Document, Document, Document> | JobCall<Resource, Document, Document, Document>

/**
 * Defines an operation in the common form of extensions: documents in JSON and XML, pages, client tokens, jobs.
 * Clients, tables and descriptions see what a plugin declares here.
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
      params: [...new Set([...FRAME_PARAMETERS, ...prepared.parameters])],
    },
    access: call.access,
    action: call.action ?? { call: name },
    ...(call.needs !== undefined && { needs: call.needs }),
    call: call as CallFacts,
    checkCall: () => checkShapes(call),
    // The call may wait for its job.
    ...('job' in call && { deadlineMs: JOB_DEADLINE_MS }),
    ...(call.deadlineMs !== undefined && { deadlineMs: call.deadlineMs }),
    run: (request, context) => run(call, prepared, request, context),
  }
}

async function run(call: AnyCall, prepared: PreparedCall, request: S3Request, context: Context) {
  await authorize(call, request, context)
  await call.admit?.(request, context)
  requireSignedBody(call, context.caller)
  const asked = await prepared.read(request)
  return 'job' in call
    ? answerJob(call, prepared, asked, request, context)
    : answerNow(call, prepared, asked, request, context)
}

/** Checks what the compiler checks for plugins in TypeScript. */
function checkDeclaration(call: AnyCall): void {
  const { name, on, result } = call as Partial<AnyCall>
  const refuse = (problem: string) => {
    throw new Error(`the call ${name ?? '(unnamed)'} ${problem}`)
  }
  if (typeof on !== 'object' || on === null) refuse('must declare in `on` which requests it answers')
  if (result?._zod === undefined) refuse('must have a `result`, a schema of zod 4: take z from dealgate')
  const { access, needs, ownRules } = call as Partial<AnyCall>
  if ((access === 'public' || needs !== undefined) && !ownRules)
    refuse('must have `ownRules` if it is public or has `needs`')
  const does = 'job' in call ? call.order : (call as Partial<typeof call>).answer
  if (typeof does !== 'function') refuse("must have answer(), or 'job' and order()")
}

/** Checks the route of a call. The docs say why calls cannot use PUT or DELETE with a sub-resource. */
function checkSelector({ name, on, ...call }: AnyCall): void {
  const { resource, path = '', subresource = '', method } = on
  const fits =
    resource === 'service'
      ? /^\/-\/[a-z][a-z0-9-]*(?:\/|\.json$|$)/.test(path) && subresource === ''
      : /^x-[a-z][a-z0-9-]*$/.test(subresource) && path === '' && method !== 'PUT'
  if (!fits) {
    throw new Error(
      `${name}: a call needs a path /-/<plugin>/v1/..., or a sub-resource x-<plugin>[-...] with GET or POST`,
    )
  }
  if ('job' in call && method === 'GET') throw new Error(`${name}: a call with a job cannot use GET`)
}

import type { S3Error } from '../../common/errors/s3-error.js'
import type { Context } from '../api/context.js'
import type { Reply, ReplyHeaders, RequestHead } from '../api/request.js'
import { isStsCall } from '../auth/authenticate.js'
import { type ErrorContext, errorReply, toS3Error } from '../http/error-reply.js'
import { isControlCall, type RequestOutline } from '../http/read-request.js'
import { versionHeader } from '../plugins/calls/answer-now.js'
import { errorFormatOf } from '../plugins/calls/format.js'
import type { Selected } from '../plugins/table.js'

/** How far a request came before it failed. */
interface Progress {
  readonly outline: RequestOutline
  /** Absent for a request that cannot be read. */
  readonly head: RequestHead | undefined
  readonly selected: Selected | undefined
  readonly context: Context | undefined
}

/** Returns the error that ends a request, as its client may know it, and the reply that states it. */
export async function refuse(thrown: unknown, progress: Progress): Promise<{ failure: S3Error; reply: Reply }> {
  const failure = await whatMayBeKnown(toS3Error(thrown), progress)
  const reply = errorReply(failure, errorContextOf(progress.outline))
  return { failure, reply: { ...reply, headers: { ...headersOf(failure, progress), ...reply.headers } } }
}

/** Describes the request in an error document, in the form that its client understands. */
export function errorContextOf(outline: RequestOutline): ErrorContext {
  return { id: outline.id, resource: outline.path, form: formOf(outline) }
}

function formOf(outline: RequestOutline): ErrorContext['form'] & string {
  if (isControlCall(outline)) return 'control'
  return isStsCall(outline) ? 'sts' : errorFormatOf(outline)
}

/** The error of a refused request whose bucket or object is not there, if its caller may know that. */
async function whatMayBeKnown(failure: S3Error, { head, selected, context }: Progress): Promise<S3Error> {
  if (!context || !head || failure.code !== 'AccessDenied') return failure
  const action = selected?.operation.action
  return missingInstead(failure, typeof action === 'string' ? action : undefined, head, context)
}

/** Returns the error of a bucket or object that is not there in place of a refusal, if the caller may know that. */
export function missingInstead(
  failure: S3Error,
  action: string | undefined,
  head: RequestHead,
  { authorizer }: Pick<Context, 'authorizer'>,
): Promise<S3Error> {
  return authorizer.missing(failure, action, head).catch(() => failure)
}

function headersOf({ status }: S3Error, { selected, context }: Progress): ReplyHeaders {
  if (selected?.operation.call) return versionHeader(selected.plugin)
  // Clients learn the region of a bucket from an unsigned HEAD that is refused.
  const tellsRegion = context && status === 403 && selected?.operation.name === 'HeadBucket'
  return tellsRegion ? { 'x-amz-bucket-region': context.server.region } : {}
}

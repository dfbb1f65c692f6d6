import type { IncomingMessage, ServerResponse } from 'node:http'
import { networkOf } from '../../common/cidr.js'
import type { ClientRate } from '../../common/client-rate.js'
import type { S3Error } from '../../common/errors/s3-error.js'
import { sendContinue } from '../../common/expectation.js'
import { clientOf } from '../../common/quota.js'
import { authorize, isAnonymous, isPassedOn } from '../access/authorize.js'
import type { Context } from '../api/context.js'
import type { Caller } from '../api/identity.js'
import type { Limits } from '../api/limits.js'
import type { AnyOperation } from '../api/operation.js'
import type { Reply, ReplyHeaders, RequestHead, S3Request } from '../api/request.js'
import { type Authenticate, isStsCall } from '../auth/authenticate.js'
import { anonymousPayload } from '../auth/signatures/parsed-signature.js'
import { type Addressing, clientAt } from '../http/addressing.js'
import { ArrivedRequest } from '../http/arrived-request.js'
import { type Bodies, readWhole } from '../http/body/body.js'
import { type BeforeBody, openBody } from '../http/body/open-body.js'
import type { WithCors } from '../http/cors.js'
import type { Downloads } from '../http/downloads.js'
import { type ErrorContext, errorReply, toS3Error } from '../http/error-reply.js'
import { hoistedHeaders } from '../http/headers.js'
import { isControlCall, readLoosely, readRequest } from '../http/read-request.js'
import { send } from '../http/send.js'
import { versionHeader } from '../plugins/calls/answer-now.js'
import { errorFormatOf } from '../plugins/calls/format.js'
import { type OperationTable, refuseVersion2, type Selected } from '../plugins/table.js'
import type { GatewayLinks } from '../s3/share.js'
import { describeRequest, requestId } from './access-log.js'
import type { Audit } from './audit.js'
import type { BucketLogs } from './bucket-logs.js'
import type { ConsoleAccess } from './console-address.js'
import type { Contexts } from './context.js'
import type { Observation } from './observe.js'
import type { Passthrough } from './passthrough.js'
import { admitClient, type CallerAdmission, type Traffic } from './traffic/traffic.js'

export interface HandleDeps {
  readonly authenticate: Authenticate
  readonly table: OperationTable
  readonly links: GatewayLinks
  readonly console: ConsoleAccess | undefined
  /** Creates the context of a request, which selects the gateway account. */
  readonly contexts: Pick<Contexts, 'for' | 'anonymous'>
  readonly limits: Limits
  /** Limits the requests and bytes of clients. */
  readonly traffic: Traffic
  /** Limits the bodies that are read at the same time. */
  readonly bodies: Bodies
  /** Limits the bytes that wait for clients. */
  readonly downloads: Downloads
  /** Limits unsigned requests with a token for the service behind a call: each is a request to that service. */
  readonly bearers: ClientRate
  readonly addressing: Addressing
  readonly withCors: WithCors
  /** Records changes, before their answer is sent. */
  readonly audit: Audit
  /** Logs requests into buckets. Absent without a data folder. */
  readonly bucketLogs: Pick<BucketLogs, 'begun' | 'ended'> | undefined
  /** Measures, traces and logs requests. */
  readonly observed: Observation
  /** Serves the gateway's own paths. Absent unless an option asks for it. */
  readonly passthrough: Passthrough | undefined
}

/**
 * THE FLOW. Each line of the `try` is a step, with the errors by which it ends the request; an error becomes the reply.
 */
export function createHandle(deps: HandleDeps): (incoming: IncomingMessage, outgoing: ServerResponse) => void {
  return (incoming, outgoing) =>
    deps.observed.serve(incoming, outgoing, () => {
      if (!deps.passthrough?.serve(incoming, outgoing)) void handle(incoming, outgoing)
    })

  /** Never rejects. */
  async function handle(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const id = requestId()
    const started = performance.now()
    // A client may disconnect at any time. Readers and writers receive the error; without a listener it would end the
    // process.
    incoming.on('error', ignore)
    outgoing.on('error', ignore)
    let head: RequestHead | undefined
    let selected: Selected | undefined
    let caller: Caller | undefined
    let reply: Reply
    let failure: S3Error | undefined
    let context: Context | undefined
    let admission: CallerAdmission | undefined
    let request: S3Request | undefined
    const errorContext = (): ErrorContext => ({
      id,
      resource: head?.path ?? incoming.url ?? '/',
      form: errorFormOf(head ?? readLoosely(incoming, deps.addressing)),
    })
    try {
      head = readRequest(incoming, id, deps) // MethodNotAllowed, InvalidURI, InvalidBucketName, KeyTooLongError
      deps.bucketLogs?.begun(head, incoming)
      admission = admitClient(deps.traffic, head, incoming) // SlowDown
      // A link that the gateway has signed, or a browser from the console: it names no caller of ours.
      const link = (await deps.links(head)) ?? deps.console?.select(head) // ServiceUnavailable
      caller = link ? undefined : await callerOf(head, incoming, outgoing, deps) // SignatureDoesNotMatch, InvalidAccessKeyId
      admission?.identify(caller) // SlowDown
      if (caller?.presigned) head = { ...head, headers: await hoistedHeaders(head, caller) } // InvalidArgument
      selected = link ?? deps.table.select(head) // MethodNotAllowed, NotImplemented, InvalidArgument, NoSuchKey
      refuseVersion2(selected.operation, caller) // InvalidRequest
      context = contextOf(deps.contexts, selected.operation, caller, head) // AccessDenied for unsigned requests
      await authorize(selected, head, context) // AccessDenied, NoSuchBucket, MethodNotAllowed, ServiceUnavailable
      request = toRequest(head, caller, selected, incoming, outgoing, deps) // InvalidDigest, InvalidRequest, NotImplemented
      reply = await run(selected.operation, request, context, deps) // the errors of the operation, SlowDown
    } catch (thrown) {
      failure = toS3Error(thrown)
      if (context && head && failure.code === 'AccessDenied')
        failure = await whyDenied(failure, selected, head, context)
      reply = refusal(failure, selected, context, errorContext())
    }
    if (head) forgetSecrets(head, reply)
    reply = head
      ? await deps.withCors(head, reply)
      : withHeaders(reply, deps.console?.headersFor(incoming.headers, incoming.headers.host ?? '') ?? {})
    const answered = performance.now()
    await deps.audit({ id, head, selected, caller, form: context?.form, reply, failure })
    const remote = head?.remoteAddress ?? clientAt(incoming, deps.addressing).address
    const counted = (cut: () => void) => deps.downloads.begin(remote, cut)
    const sent = await send(incoming, outgoing, reply, id, errorContext, counted)
    admission?.leave(sent.bytes)
    failure = sent.failure ?? failure
    const { body } = request ?? {}
    const facts = {
      ...{ id, incoming, outgoing, head, selected, caller, context, reply, failure, started, answered, sent, remote },
      received: body?.received,
      length: body?.length,
    }
    const entry = describeRequest(facts)
    deps.observed.ended(entry, incoming, outgoing)
    deps.bucketLogs?.ended(entry, facts)
  }
}

/**
 * The caller. Browsers never sign a preflight: on a presigned URL, it carries the signature of the request that
 * follows.
 */
async function callerOf(
  head: RequestHead,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  deps: HandleDeps,
): Promise<Caller | undefined> {
  if (head.method === 'OPTIONS') return undefined
  return deps.authenticate(head, bodyReader(head, incoming, outgoing, deps))
}

/** Holds what the operation may use, with the gateway account of the caller. */
function contextOf(
  contexts: HandleDeps['contexts'],
  operation: AnyOperation,
  caller: Caller | undefined,
  head: RequestHead,
): Context {
  if (isAnonymous(operation, caller, head)) return contexts.anonymous(operation, head)
  return contexts.for(caller, operation, head)
}

function refusal(
  failure: S3Error,
  selected: Selected | undefined,
  context: Context | undefined,
  errorContext: ErrorContext,
): Reply {
  const reply = errorReply(failure, errorContext)
  if (selected?.operation.call) return withHeaders(reply, versionHeader(selected.plugin))
  // Clients learn the region of a bucket from an unsigned HEAD that is refused.
  if (context && failure.status === 403 && selected?.operation.name === 'HeadBucket')
    return withHeaders(reply, { 'x-amz-bucket-region': context.server.region })
  return reply
}

function ignore(): void {}

/** The work of a late answer goes on after the answer has begun, also without its client. */
function forgetSecrets({ secrets }: RequestHead, { body }: Reply): void {
  const overwrite = () => {
    for (const secret of secrets) secret.fill(0)
  }
  if (typeof body === 'object' && 'late' in body) body.late.then(overwrite, overwrite)
  else overwrite()
}

/** The error of a refused request whose bucket or object is not there, if its caller may know that. */
function whyDenied(failure: S3Error, selected: Selected | undefined, head: RequestHead, context: Context) {
  const action = selected?.operation.action
  const name = typeof action === 'string' ? action : undefined
  return context.authorizer.missing(failure, name, head).catch(() => failure)
}

function errorFormOf(head: Parameters<typeof errorFormatOf>[0]): ErrorContext['form'] & string {
  if (isControlCall(head)) return 'control'
  return isStsCall(head) ? 'sts' : errorFormatOf(head)
}

function withHeaders(reply: Reply, headers: ReplyHeaders): Reply {
  return { ...reply, headers: { ...headers, ...reply.headers } }
}

/** Reads the body for signatures that cover an undeclared hash: see readWhole. */
function bodyReader(head: RequestHead, incoming: IncomingMessage, outgoing: ServerResponse, deps: BodyDeps) {
  const beforeBody = takingIn(deps, () => clientOf('', head.remoteAddress), outgoing)
  return readWhole(incoming, head, { bodyLimits: deps.limits, beforeBody })
}

type BodyDeps = Pick<HandleDeps, 'limits' | 'bodies'>

/** Reserves a slot for the client's body, then sends `100 Continue`. */
function takingIn({ bodies }: BodyDeps, client: () => string, outgoing: ServerResponse): BeforeBody {
  return () => {
    const leave = bodies.enter(client())
    sendContinue(outgoing)
    return leave
  }
}

function toRequest(
  head: RequestHead,
  caller: Caller | undefined,
  selected: Selected,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  deps: BodyDeps,
): S3Request {
  const client = () => clientOf(caller?.identity.accessKeyId ?? '', head.remoteAddress)
  const payload = caller?.payload ?? anonymousPayload(head)
  const body = openBody(incoming, head, payload, deps.limits, takingIn(deps, client, outgoing))
  return new ArrivedRequest(head, selected, body, outgoing) as S3Request
}

function run(operation: AnyOperation, request: S3Request, context: Context, deps: HandleDeps): Promise<Reply> {
  // The table passes an operation only requests of its own resource; the union type cannot express that.
  const work = () => (operation.run as (request: S3Request, context: Context) => Promise<Reply>)(request, context)
  return isPassedOn(operation, context.caller, request)
    ? deps.bearers.run(networkOf(request.remoteAddress), work)
    : work()
}
